package capture

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gm/formats/column"
	"gm/internal/capture/live"
)

// maxEnded bounds the processes in a view that have ended.
const maxEnded = 32

// account is the live state of a process, for views.
type account struct {
	driver    *liveRows
	framework *live.Framework
	startNS   int64
	steps     lineCounter
}

func newAccount(texts *column.Strings) account {
	return account{driver: newLiveRows(), framework: live.NewFramework(texts), startNS: time.Now().UnixNano()}
}

// Folder returns the folder of the session, which is its address for package live.
func (s *Session) Folder() string { return s.folder }

// View returns the session's present state. Call it on the goroutine that polls.
func (s *Session) View() *live.View {
	v := &live.View{
		PID: os.Getpid(), Command: s.words, Output: s.options.Output, StartNS: s.startNS, NowNS: time.Now().UnixNano(), Processes: []live.Process{},
	}
	outputs := s.outputsNow()
	view := func(p *process) live.Process {
		q := p.view(v.NowNS, s.cards)
		q.Output = outputs[p]
		return q
	}
	for _, p := range s.processes {
		if p.usesCUDA() && !p.life.dead() {
			v.Processes = append(v.Processes, view(p))
		}
	}
	running := len(v.Processes)
	slices.SortStableFunc(v.Processes, func(a, b live.Process) int {
		return cmp.Or(cmp.Compare(uint(a.Rank), uint(b.Rank)), cmp.Compare(a.StartNS, b.StartNS)) // -1, unknown, sorts last
	})
	for _, p := range slices.Backward(s.processes) {
		switch {
		case !p.usesCUDA() || !p.life.dead() || slices.ContainsFunc(v.Processes[:running], p.is):
		case len(v.Processes)-running == maxEnded:
			v.Omitted++
		default:
			v.Processes = append(v.Processes, view(p))
		}
	}
	return v
}

// outputsNow returns the names that the traces would have if no further process came.
func (s *Session) outputsNow() map[*process]string {
	if s.options.Output == "" {
		return nil
	}
	host, _ := os.Hostname()
	var users []*process
	var ids []identity
	for _, p := range s.processes {
		if p.usesCUDA() {
			users, ids = append(users, p), append(ids, p.identity(host))
		}
	}
	outputs := map[*process]string{}
	for i, name := range outputNames(s.options.Output, ids) {
		outputs[users[i]] = name
	}
	return outputs
}

func (p *process) usesCUDA() bool {
	return p.header != nil || p.history != nil || p.greeting.Torch != ""
}

// is reports whether of is the view of this process, which may have died since.
func (p *process) is(of live.Process) bool { return p.pid == of.PID && p.live.startNS == of.StartNS }

func (p *process) view(nowNS int64, c *cards) live.Process {
	id := p.identity("")
	v := live.Process{
		PID: p.pid, Command: p.command(), Rank: id.rank, WorldSize: id.worldSize, StartNS: p.live.startNS, Ended: p.life.dead(),
		Steps: p.live.steps.count(filepath.Join(p.folder, "marks."+strconv.Itoa(p.pid))), History: p.greeting.History,
	}
	if p.failed != nil {
		v.History = "ended: " + p.failed.Error()
	}
	counters := p.count()
	v.Waits, v.WaitedNS, v.Lost = counters.Waits, counters.WaitedNS, counters.Lost
	v.Devices = p.deviceViews(nowNS, c)
	return v
}

func (p *process) deviceViews(nowNS int64, c *cards) []live.Device {
	framework, driver := p.live.framework.Levels(nowNS), p.live.driver.account.Levels(nowNS)
	ordinals := map[int32]bool{}
	for ordinal := range framework {
		ordinals[ordinal] = true
	}
	for ordinal := range driver {
		ordinals[ordinal] = true
	}
	views := []live.Device{}
	for _, ordinal := range slices.Sorted(maps.Keys(ordinals)) {
		d := p.interpreter.devices[ordinal]
		v := live.Device{
			Ordinal: ordinal, Name: d.name, Total: d.total, Process: p.samples[ordinal].process,
			Framework: framework[ordinal], Driver: driver[ordinal],
		}
		if card := c.find(d.uuid); card != nil && len(card.samples) > 0 {
			v.Used = card.samples[len(card.samples)-1].used
		}
		views = append(views, v)
	}
	return views
}

// lineCounter counts the lines of a growing file.
type lineCounter struct{ lines, read int64 }

// count returns the number of lines of the named file, 0 if it does not exist.
func (l *lineCounter) count(name string) int64 {
	f, err := openRegular(name)
	if err != nil {
		return l.lines
	}
	defer f.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(buffer, l.read)
		l.read += int64(n)
		l.lines += int64(bytes.Count(buffer[:n], []byte("\n")))
		if err != nil {
			return l.lines
		}
	}
}
