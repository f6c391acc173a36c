package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gm/formats/trace"
)

// Output is where the trace of a process goes, and what it is of.
type Output struct {
	Name    string // "" for standard output
	PID     int
	Rank    int // -1 unknown
	Command string

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
		if p.ring == nil && p.history == nil {
			continue
		}
		id := p.identity(host)
		ids = append(ids, id)
		outputs = append(outputs, Output{PID: p.pid, Rank: id.rank, Command: p.command(), session: s, process: p})
	}
	for i, name := range outputNames(pattern, ids) {
		outputs[i].Name = name
	}
	return outputs, nil
}

func (p *process) identity(host string) identity {
	id := identity{host: host, pid: p.pid, rank: -1, localRank: -1, worldSize: -1}
	if p.ring != nil {
		h := p.ring.Header
		id.rank, id.localRank, id.worldSize, id.startNS = h.Rank, h.LocalRank, h.WorldSize, h.StartNS
	}
	return id
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
func (o *Output) Write(w io.Writer) (rows int64, err error) {
	p := o.process
	out := trace.NewWriter(w, trace.Meta{})
	driver, err := p.driver.read()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	marks, err := p.marks()
	if err != nil {
		return 0, err
	}
	m, err := newMerger(out, driver, p.texts, marks)
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

// describe fills in the metadata.
func (o *Output) describe(meta *trace.Meta) {
	p := o.process
	if host, err := os.Hostname(); err == nil {
		meta.Host = host
	}
	meta.Source = "gmtrace run"
	meta.PID = int64(p.pid)
	meta.Command = o.Command
	if id := p.identity(""); id.rank >= 0 {
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
