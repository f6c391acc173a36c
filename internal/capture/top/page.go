// Package top shows the live GPU memory of captured programs on a terminal.
//
//	find.go     finding running captures
//	viewer.go   the loop that shows and refreshes a page
//	page.go     its content
//	tables.go   its tables
//	screen.go   the terminal, and its keys
//	program.go  a program that runs below the page
//	machine.go  all processes on the GPUs, without a capture
package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gm/internal/capture/live"
	"gm/internal/report"
	"gm/internal/units"
)

// page is the page of a capture.
type page struct {
	view    *live.View // nil before the first
	chosen  processKey
	table   byte     // the key of a table; 0 for stacks if there are any, and tags otherwise
	problem string   // why the view is not fresh; "" if it is
	output  []string // last lines that the program printed
	keys    string   // help on the keys; "" without a terminal
}

// processKey identifies a process. The PID is not enough: it stays when a process executes another program.
type processKey struct {
	pid     int
	startNS int64
}

func keyOf(p *live.Process) processKey { return processKey{p.PID, p.StartNS} }

// pageLine is a line of a page.
type pageLine struct {
	text string
	bar  bool // shown in reverse: it begins a part of the page
}

// lines returns the page in at most height lines of at most width characters.
func (p *page) lines(width, height int) []pageLine {
	l := &layout{width: width}
	var footer []pageLine
	if p.keys != "" {
		footer = []pageLine{{p.keys, true}}
		height--
	}
	if p.view == nil {
		l.add(cmp.Or(p.problem, "nothing is known yet"))
	} else {
		p.head(l)
		p.body(l, height)
	}
	l.cut(height - p.outputLines(height))
	p.addOutput(l, height)
	l.cut(height)
	for len(footer) > 0 && len(l.lines) < height {
		l.blank()
	}
	return cutLines(append(l.lines, footer...), width)
}

// body adds the processes.
func (p *page) body(l *layout, height int) {
	n := p.index()
	if n < 0 {
		l.add("no process has used CUDA yet")
		return
	}
	if len(p.view.Processes) > 1 {
		p.addProcesses(l, n, max(height/4, 2))
	}
	process := &p.view.Processes[n]
	p.addProcess(l, process)
	addDevices(l, process, max(height/3, 2))
	p.addGroups(l, process, height-p.outputLines(height)-len(l.lines))
}

// head adds the line of the capture.
func (p *page) head(l *layout) {
	text := fmt.Sprintf("gmtrace %d: %s", p.view.PID, strings.Join(p.view.Command, " "))
	right := since(p.view.NowNS, p.view.StartNS)
	if p.problem != "" {
		right = p.problem
	}
	l.addBoth(text, right)
}

// since returns the time that has passed since then, in whole seconds.
func since(nowNS, timeNS int64) string {
	return time.Duration(max(nowNS-timeNS, 0)).Truncate(time.Second).String()
}

// index returns the index of the chosen process, 0 if that is gone, -1 if there are none.
func (p *page) index() int {
	if p.view == nil || len(p.view.Processes) == 0 {
		return -1
	}
	return max(slices.IndexFunc(p.view.Processes, func(q live.Process) bool { return keyOf(&q) == p.chosen }), 0)
}

// choose selects the process with a PID, if there is one.
func (p *page) choose(pid int) {
	for i := range p.view.Processes {
		if p.view.Processes[i].PID == pid {
			p.chosen = keyOf(&p.view.Processes[i])
			return
		}
	}
}

// addProcesses adds the list of processes, limited to the given lines around the chosen one.
func (p *page) addProcesses(l *layout, chosen, rows int) {
	all := p.view.Processes
	first := min(max(chosen-rows/2, 0), max(len(all)-rows, 0))
	t := report.Table{Titles: []string{"", "pid", "rank", "tensors", "driver", "card used"}}
	var names []string
	for i := first; i < min(first+rows, len(all)); i++ {
		q := &all[i]
		mark := map[bool]string{true: ">"}[i == chosen]
		tensors, driver, card := totals(q)
		t.Add(mark, strconv.Itoa(q.PID), rankOf(q), size(tensors), size(driver), size(card))
		names = append(names, map[bool]string{true: "(ended) "}[q.Ended]+withoutFolder(q.Command))
	}
	l.addNamed(&t, "command", names)
	if more := len(all) - rows + p.view.Omitted; more > 0 {
		l.lines[l.bar].text = cut(fmt.Sprintf("%s, %d more", l.lines[l.bar].text, more), l.width)
	}
}

// withoutFolder removes the folder of the program from a command.
func withoutFolder(command string) string {
	program, rest, more := strings.Cut(command, " ")
	program = program[strings.LastIndexByte(program, '/')+1:]
	if !more {
		return program
	}
	return program + " " + rest
}

// totals sums the live memory of a process on all devices.
func totals(p *live.Process) (tensors, driver, card int64) {
	for _, d := range p.Devices {
		if d.Framework != nil {
			tensors += d.Framework.Live
		}
		if d.Driver != nil {
			driver += d.Driver.Live
		}
		card += d.Used
	}
	return tensors, driver, card
}

func rankOf(p *live.Process) string {
	if p.Rank < 0 {
		return ""
	}
	return strconv.Itoa(p.Rank)
}

// addProcess adds the lines about a process as a whole.
func (p *page) addProcess(l *layout, q *live.Process) {
	facts := []string{fmt.Sprintf("process %d", q.PID)}
	if q.Rank >= 0 {
		facts = append(facts, fmt.Sprintf("rank %d of %d", q.Rank, q.WorldSize))
	}
	if len(q.Devices) == 1 && q.Devices[0].Total > 0 {
		facts = append(facts, fmt.Sprintf("%s of %s", q.Devices[0].Name, units.Bytes(q.Devices[0].Total)))
	}
	if q.Steps > 0 {
		facts = append(facts, units.Count(q.Steps, "step"))
	}
	if q.Ended {
		facts = append(facts, "ended")
	}
	l.blank()
	l.addBoth(strings.Join(facts, ", "), since(p.view.NowNS, q.StartNS))
	if q.History != "" && q.History != "on" {
		l.add("history of PyTorch: " + q.History)
	}
	if q.Waits > 0 || q.Lost > 0 {
		l.add(fmt.Sprintf("it waited %d times for gmtrace, %s; records lost: %d",
			q.Waits, time.Duration(q.WaitedNS).Round(time.Millisecond), q.Lost))
	}
	switch until := untilOf(q); {
	case until == 0 && q.History == "on":
		l.add("tensors are not known yet: they come every second while a page is shown")
	case until > 0 && !q.Ended && p.view.NowNS-until > int64(stale):
		l.add("no news of tensors for " + since(p.view.NowNS, until))
	}
}

// stale is the age from which the page says how old the state of the tensors is.
const stale = 4 * time.Second

// untilOf returns the time up to which the tensors of a process are known, 0 if there are none.
func untilOf(p *live.Process) (until int64) {
	for _, d := range p.Devices {
		if d.Framework != nil {
			until = max(until, d.Framework.UntilNS)
		}
	}
	return until
}

// outputLines is the number of lines for a program's output.
func (p *page) outputLines(height int) int {
	if len(p.output) == 0 {
		return 0
	}
	return 2 + min(len(p.output), max(height/6, 1))
}

func (p *page) addOutput(l *layout, height int) {
	n := p.outputLines(height)
	if n == 0 {
		return
	}
	for len(l.lines) < height-n {
		l.lines = append(l.lines, pageLine{})
	}
	l.blank()
	l.lines = append(l.lines, pageLine{"output of the program", true})
	for _, text := range p.output[len(p.output)-(n-2):] {
		l.add(text)
	}
}

// cut truncates text to width characters.
func cut(text string, width int) string {
	text = report.Printable(text)
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}
