package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// Output is a trace to write: its name, and the process that it records.
type Output struct {
	Name    string // "" for standard output
	PID     int
	Command string

	id      identity
	session *Session
	process *process
}

// Outputs returns the traces to write, one for each process that touched CUDA. Call it when all processes have ended, or to stop recording
// those that have not. The pattern names the traces.
func (s *Session) Outputs(pattern string) ([]Output, error) {
	s.Poll()
	return s.Recovered(pattern)
}

// Recovered is Outputs for a session from Recover.
func (s *Session) Recovered(pattern string) ([]Output, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	var outputs []Output
	var ids []identity
	for _, p := range s.processes {
		if p.header == nil && p.history == nil || s.options.OnlyOOM && !p.ranOut() {
			continue
		}
		id := p.identity(host)
		ids = append(ids, id)
		outputs = append(outputs, Output{PID: p.pid, Command: p.command(), id: id, session: s, process: p})
	}
	for i, name := range outputNames(pattern, ids) {
		outputs[i].Name = name
	}
	return outputs, nil
}

// ranOut reports whether a request of the process was refused. With Options.OnlyOOM, dumps are written only then.
func (p *process) ranOut() bool { return p.interpreter.oom || p.history != nil }

func (p *process) identity(host string) identity {
	id := identity{host: host, pid: p.pid, rank: -1, localRank: -1, worldSize: -1}
	if h := p.header; h != nil {
		id.rank, id.localRank, id.worldSize, id.startNS = h.Rank, h.LocalRank, h.WorldSize, h.StartNS
	}
	return id
}

// program returns the name of the program that a process runs: its script if it has one.
func (p *process) program() string {
	if p.header == nil || len(p.header.Command) == 0 {
		return fmt.Sprintf("process %d", p.pid)
	}
	words := p.header.Command
	for _, w := range words[1:] {
		if filepath.Ext(w) == ".py" {
			return filepath.Base(w)
		}
	}
	return filepath.Base(words[0])
}

// command returns the command line of a process, quoted for a shell.
func (p *process) command() string {
	if p.header == nil {
		return ""
	}
	words := slices.Clone(p.header.Command)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;<>()*?[]#~`") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Write writes the trace and returns its number of rows. If that fails, as on a full disk, it writes the trace into the session's folder,
// if there is room, and the error names the file.
func (o *Output) Write(to io.Writer) (rows int64, err error) {
	s := o.session
	name := fmt.Sprintf("%s-%d.%d.parquet", rescuedPrefix, o.PID, o.process.number)
	r := &rescue{to: to, folders: slices.Compact([]string{s.folder, s.rings}), name: name}
	if s.recovered {
		r.folders = nil
	}
	rows, err = o.write(r)
	return rows, r.end(err)
}

// rescuedPrefix begins the names of traces in the session's folder that could not be written to their outputs.
const rescuedPrefix = "trace"

func (o *Output) write(to io.Writer) (rows int64, err error) {
	p := o.process
	out := trace.NewWriter(to, trace.Meta{})
	driver, err := p.replay()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, driver.close()) }()
	marks, err := p.marks()
	if err != nil {
		p.lack("no steps are marked: %v", err)
	}
	marked := len(marks) > 0
	w, marks := o.session.options.Steps.window(marks)
	o.warn(w, marked)
	m, err := newMerger(out, driver, p.texts, w, o.withLacks(marks))
	if err != nil {
		return 0, err
	}
	if p.history != nil {
		if err := p.history.Write(m, func(text string) { o.session.options.Warn("%s", text) }); err != nil {
			return 0, fmt.Errorf("history of PyTorch: %w", err)
		}
		p.history.Describe(out.Meta())
	}
	if err := m.close(); err != nil {
		return 0, err
	}
	o.checkOrder(m, driver)
	o.describe(out.Meta(), driver.interpreter)
	return m.count, out.Close()
}

// withLacks adds what the recording lacks, and when the clock was set, to the marks of a trace, in their order of time.
func (o *Output) withLacks(marks []mark) []mark {
	all := slices.Concat(marks, o.process.notes)
	for _, l := range o.process.lacks {
		all = append(all, mark{l.timeNS, trace.IncompleteTag(l.text)})
	}
	slices.SortStableFunc(all, func(a, b mark) int { return cmp.Compare(a.timeNS, b.timeNS) })
	return all
}

// checkOrder says what was found out about the rows while they were written.
func (o *Output) checkOrder(m *merger, r *replay) {
	if r.short {
		o.process.lack("a part of its calls of the driver is missing, since the file that kept them was damaged")
	}
	if r.interpreter.left > 0 {
		o.process.lack("%d blocks are left out, since %d lived already", r.interpreter.left, maxLive)
	}
	if m.late > 0 {
		o.session.options.Warn("process %d: %d rows have the time of the row above, since their own is up to %v before it: was the clock set?",
			o.PID, m.late, time.Duration(m.latest).Round(time.Millisecond))
	}
}

// warn says what the trace lacks.
func (o *Output) warn(w window, marked bool) {
	p, warn := o.process, o.session.options.Warn
	if of := o.session.options.Marks; of != "" && !marked && p.greeting.Torch != "" {
		warn("process %d: %s never returned: no iterations are marked", p.pid, of)
	}
	switch {
	case p.greeting.History == "" && p.interpreter.libraries.has("pytorch"):
		p.lack("PyTorch's tensors are not recorded, since Python did not load the hook: is it run with -E, -I or -S?")
	case p.greeting.History != "" && p.greeting.History != "on":
		p.lack("PyTorch's tensors are not recorded: %s", p.greeting.History)
	case p.greeting.History == "on" && p.history == nil && p.failed == nil && !o.session.options.OnlyOOM && w.fromNS != endOfTime:
		p.lack("PyTorch's tensors are not recorded: it was killed, or ended by _exit, before there was news of them")
	}
	if p.headless && !o.session.options.OnlyOOM {
		p.lack("PyTorch's first events are lost, there were so many at once: tensors older than the rest are tagged preexisting")
	}
	if w.fromNS == endOfTime {
		warn("process %d: it ended before the first iteration to record", p.pid)
	}
	if p.header == nil {
		p.lack("it did not load the preload library: only PyTorch's tensors are recorded")
		return
	}
	o.warnOfRing(p.count())
	for _, name := range slices.Sorted(maps.Keys(p.interpreter.unknown)) {
		p.lack("it uses a version of %s that is not known here, whose memory is not recorded", name)
	}
}

// warnOfRing says what the ring did not carry.
func (o *Output) warnOfRing(c ring.Counters) {
	p := o.process
	if c.Lost > 0 {
		p.lack("%d calls were not recorded, since gmtrace was held up for too long, or had no room", c.Lost)
	}
	if c.Torn > 0 {
		p.lack("its threads ended in the midst of %d calls, which are not recorded", c.Torn)
	}
	if c.Damaged > 0 {
		p.lack("%d records are left out: something wrote over them", c.Damaged)
	}
	if c.OddTimes > 0 {
		p.lack("%d records have the time of the one before, since their own cannot be", c.OddTimes)
	}
	if c.Waits > 0 {
		o.session.options.Warn("process %d: it waited %d times for gmtrace, %v in all", p.pid, c.Waits, time.Duration(c.WaitedNS))
	}
}

// describe fills in the metadata.
func (o *Output) describe(meta *trace.Meta, in *interpreter) {
	p := o.process
	meta.Host = o.id.host
	meta.Source = "gmtrace run of " + p.program()
	meta.PID = int64(p.pid)
	meta.Command = o.Command
	for _, l := range p.lacks {
		meta.Incomplete += when(meta.Incomplete != "", "; ") + l.text
	}
	if id := o.id; id.rank >= 0 {
		meta.Rank, meta.LocalRank, meta.WorldSize = int64(id.rank), int64(max(id.localRank, 0)), int64(max(id.worldSize, 0))
	}
	for ordinal, d := range in.devices {
		if ordinal < 0 {
			continue
		}
		for len(meta.Devices) <= int(ordinal) {
			meta.Devices = append(meta.Devices, "")
		}
		meta.Devices[ordinal] = d.name
		meta.Capacity = max(meta.Capacity, d.total)
	}
}
