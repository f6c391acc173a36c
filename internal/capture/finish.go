package capture

import (
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
)

// Output is where the trace of a process goes, and what it is of.
type Output struct {
	Name    string // "" for standard output
	PID     int
	Command string

	id      identity
	session *Session
	process *process
}

// Outputs returns the traces to write, one for each process that touched CUDA, when all processes are dead or are to be recorded no
// longer. The pattern names them.
func (s *Session) Outputs(pattern string) ([]Output, error) {
	if err := s.Poll(); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	var outputs []Output
	var ids []identity
	for _, p := range s.processes {
		if p.ring == nil && p.history == nil || s.options.OnlyOOM && !p.ranOut() {
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

// ranOut tells whether a request of the process was refused. With Options.OnlyOOM there is a history only then.
func (p *process) ranOut() bool { return p.interpreter.oom || p.history != nil }

func (p *process) identity(host string) identity {
	id := identity{host: host, pid: p.pid, rank: -1, localRank: -1, worldSize: -1}
	if p.ring != nil {
		h := p.ring.Header
		id.rank, id.localRank, id.worldSize, id.startNS = h.Rank, h.LocalRank, h.WorldSize, h.StartNS
	}
	return id
}

// program names what a process runs: a script, if its interpreter was given one.
func (p *process) program() string {
	if p.ring == nil || len(p.ring.Header.Command) == 0 {
		return fmt.Sprintf("process %d", p.pid)
	}
	words := p.ring.Header.Command
	for _, w := range words[1:] {
		if filepath.Ext(w) == ".py" {
			return filepath.Base(w)
		}
	}
	return filepath.Base(words[0])
}

// command returns the command line of a process, quoted as a shell would need it.
func (p *process) command() string {
	if p.ring == nil {
		return ""
	}
	words := slices.Clone(p.ring.Header.Command)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;<>()*?[]#~`") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Write writes the trace and returns its number of rows.
func (o *Output) Write(to io.Writer) (rows int64, err error) {
	p := o.process
	out := trace.NewWriter(to, trace.Meta{})
	driver, err := p.driver.read()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	marks, err := p.marks()
	if err != nil {
		return 0, err
	}
	marked := len(marks) > 0
	w, marks := o.session.options.Steps.window(marks)
	o.warn(w, marked)
	m, err := newMerger(out, driver, p.texts, w, marks)
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
	o.describe(out.Meta())
	return m.count, out.Close()
}

// warn says what the trace lacks.
func (o *Output) warn(w window, marked bool) {
	p, warn := o.process, o.session.options.Warn
	if of := o.session.options.Marks; of != "" && !marked && p.greeting.Torch != "" {
		warn("process %d: %s never returned: no iterations are marked", p.pid, of)
	}
	switch {
	case p.greeting.History == "" && p.interpreter.libraries.has("pytorch"):
		warn("process %d: PyTorch's tensors are not recorded, since Python did not load the hook: is it run with -E, -I or -S?", p.pid)
	case p.greeting.History != "" && p.greeting.History != "on":
		warn("process %d: PyTorch's tensors are not recorded: %s", p.pid, p.greeting.History)
	case p.greeting.History == "on" && p.history == nil && !o.session.options.OnlyOOM && w.fromNS != endOfTime:
		warn("process %d: PyTorch's tensors are not recorded: it was killed, or ended by _exit, before there was news of them", p.pid)
	case p.failed != nil:
		warn("process %d: PyTorch's tensors are recorded up to a dump that cannot be read: %v", p.pid, p.failed)
	}
	if p.headless && !o.session.options.OnlyOOM {
		warn("process %d: PyTorch's first events are lost, there were so many at once: tensors older than the rest are tagged preexisting", p.pid)
	}
	if w.fromNS == endOfTime {
		warn("process %d: it ended before the first iteration to record", p.pid)
	}
	if p.ring == nil {
		warn("process %d: it did not load the preload library: only PyTorch's tensors are recorded", p.pid)
		return
	}
	c := p.ring.Counters()
	if c.Lost > 0 {
		warn("process %d: %d calls were not recorded, since gmtrace was held up for too long", p.pid, c.Lost)
	}
	if c.Torn > 0 {
		warn("process %d: it was killed in the midst of %d calls", p.pid, c.Torn)
	}
	if c.Waits > 0 {
		warn("process %d: it waited %d times for gmtrace, %v in all", p.pid, c.Waits, time.Duration(c.WaitedNS))
	}
	for _, name := range slices.Sorted(maps.Keys(p.interpreter.unknown)) {
		warn("process %d: it uses a version of %s that is not known here, whose memory is not recorded", p.pid, name)
	}
}

// describe fills in the metadata.
func (o *Output) describe(meta *trace.Meta) {
	p := o.process
	meta.Host = o.id.host
	meta.Source = "gmtrace run of " + p.program()
	meta.PID = int64(p.pid)
	meta.Command = o.Command
	if id := o.id; id.rank >= 0 {
		meta.Rank, meta.LocalRank, meta.WorldSize = int64(id.rank), int64(max(id.localRank, 0)), int64(max(id.worldSize, 0))
	}
	for ordinal, d := range p.interpreter.devices {
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
