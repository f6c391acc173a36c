package main

import (
	"fmt"
	"strings"
	"time"

	"gm/internal/bench/remedy"
	"gm/internal/report"
	"gm/internal/trace/failure"
	"gm/internal/trace/overview"
	"gm/internal/trace/text"
	"gm/internal/units"
)

// maxHolders is how many stacks and tags are listed.
const maxHolders = 5

// The width of a line and of a stack in it, in characters.
const (
	lineWidth  = 100
	stackWidth = 68
)

func (w *whyOOM) print(out *strings.Builder) error {
	if len(w.Failures) == 0 {
		return w.printPeaks(out)
	}
	for i, f := range w.Failures {
		if i > 0 {
			out.WriteString("\n")
		}
		if err := w.printFailure(out, f); err != nil {
			return err
		}
	}
	return nil
}

// printPeaks prints what there is to say when no request failed.
func (w *whyOOM) printPeaks(out *strings.Builder) error {
	said := "No request for GPU memory failed in this trace."
	if w.unrecorded {
		said += " The snapshot has no history: call torch.cuda.memory._record_memory_history() in the program, before it allocates."
	} else if w.Midway {
		said += " It begins midway: what failed before is not in it."
	}
	paragraph(out, said)
	t := &report.Table{Titles: []string{"device", "peak of live bytes", "at row", "after", "reserved at most"}}
	for _, p := range w.Peaks {
		reserved := "not recorded"
		if p.Reserved > 0 {
			reserved = size(p.Reserved)
		}
		t.Add(fmt.Sprint(p.Device), size(p.Live), fmt.Sprint(p.Row), w.after(p.TimeNS).String(), reserved)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	out.WriteString("\n")
	if err := t.Write(out); err != nil {
		return err
	}
	out.WriteString("\n")
	paragraph(out, "gmtrace show --top says who holds it at the peak, and gmbench --fit which card is large enough.")
	return nil
}

// after returns the time of a moment since the first row.
func (w *whyOOM) after(timeNS int64) time.Duration {
	return time.Duration(timeNS - w.overview.StartNS).Round(time.Millisecond)
}

func (w *whyOOM) printFailure(out *strings.Builder, f *oomOf) error {
	by := ""
	if f.By != "" {
		by = " by " + f.By
	}
	head := fmt.Sprintf("device %d ran out of memory: a request of %s%s failed at row %d, after %s",
		f.Device, size(f.Size), by, f.Row, w.after(f.TimeNS))
	if f.Nth > 1 {
		head += fmt.Sprintf(", the last of %d that failed", f.Nth)
	}
	paragraph(out, report.Printable(head))
	if f.Stack != "" {
		paragraph(out, "in "+report.Stack(f.Stack, lineWidth-3))
	}
	out.WriteString("\n")
	for _, sentence := range text.Verdict(f.Failure) {
		paragraph(out, sentence)
	}
	if f.Later > 0 {
		paragraph(out, fmt.Sprintf("The program went on, through %s.", units.Count(f.Later, "more request")))
	}
	if t := memoryTable(f.Failure); len(t.Rows) > 0 {
		out.WriteString("\n")
		if err := t.Write(out); err != nil {
			return err
		}
	}
	if err := printHolders(out, f.Holders); err != nil {
		return err
	}
	if len(f.Leaks) > 0 {
		out.WriteString("\n")
		text.Leaks(out, f.Leaks)
	}
	return printHelp(out, f)
}

// memoryTable says where the memory was.
func memoryTable(f *failure.Failure) *report.Table {
	t := &report.Table{Titles: []string{"the memory", "size"}}
	add := func(name string, bytes int64) {
		if bytes > 0 {
			t.Add(name, size(bytes))
		}
	}
	m := &f.Memory
	add("tensors", m.Live)
	add("by which their blocks are larger", m.Rounding+m.Tails)
	add("freed, but other streams may still use it", m.Pending)
	add("free in segments of other streams", m.Idle.Streams)
	add("free in other pools, such as those of CUDA graphs", m.Idle.Pools)
	if f.Size > 1<<20 {
		add("free in segments for requests up to 1 MiB", m.Idle.Classes)
	} else {
		add("free in segments for larger requests", m.Idle.Classes)
	}
	if m.Idle.Pieces > 0 {
		add(fmt.Sprintf("free in pieces of up to %s", size(m.Largest)), m.Idle.Pieces)
	}
	add("reserved by PyTorch, in all", m.Reserved)
	if f.Obtained > 0 {
		add("other memory of the process: context, libraries", max(f.Obtained-m.Reserved, 0))
		add("of other processes and the driver", f.Others())
	}
	if f.Cause != failure.Unknown {
		t.Add("free on the device", size(f.Free))
	}
	return t
}

// printHolders says who held the memory.
func printHolders(out *strings.Builder, m *overview.Moment) error {
	if m == nil || m.Blocks == 0 {
		return nil
	}
	groups := m.Stacks
	title := "tensors, by stack (innermost frame first)"
	if !m.HasStacks {
		title, groups = "tensors, by size and stream (no stacks were recorded)", m.Requests
	}
	var stacks []string
	for _, g := range groups {
		stacks = append(stacks, g.Name)
	}
	names := report.StackNames{}
	if m.HasStacks {
		names = report.NewStackNames(stacks, stackWidth)
	}
	tables := []*report.Table{holders(title, groups, m, names.Of)}
	if len(m.Tags) > 0 {
		tables = append([]*report.Table{holders("tensors, by tag", m.Tags[:min(len(m.Tags), maxHolders)], m, report.Printable)}, tables...)
	}
	for _, t := range tables {
		out.WriteString("\n")
		if err := t.Write(out); err != nil {
			return err
		}
	}
	return nil
}

func holders(title string, groups []overview.Group, m *overview.Moment, name func(string) string) *report.Table {
	t := &report.Table{Titles: []string{title, "size", "share"}}
	rest := m.Live
	for _, g := range groups {
		t.Add(name(g.Name), size(g.Bytes), fmt.Sprintf("%.1f%%", 100*g.Share))
		rest -= g.Bytes
	}
	if rest > 0 && m.Live > 0 {
		t.Add("others", size(rest), fmt.Sprintf("%.1f%%", 100*float64(rest)/float64(m.Live)))
	}
	return t
}

// printHelp says what would have helped.
func printHelp(out *strings.Builder, f *oomOf) error {
	if f.Replays != nil && len(f.Replays.Trials) > 0 {
		t := &report.Table{Titles: []string{"would it have fitted?", "fits", "reserved"}}
		for _, trial := range append([]remedy.Trial{f.Replays.Recorded}, f.Replays.Trials...) {
			reserved := ""
			if trial.Reserved > 0 {
				reserved = size(trial.Reserved)
			}
			t.Add(trialName(trial), string(trial.Met), reserved)
		}
		if m := f.Movable; swaps(f) {
			t.Add("gmswap run -m: "+basis(m), string(fits(f)), size(m.Least))
		}
		out.WriteString("\n")
		if err := t.Write(out); err != nil {
			return err
		}
	}
	out.WriteString("\n")
	for _, sentence := range adviceOf(f) {
		paragraph(out, sentence)
	}
	return nil
}

// trialName says what a trial stands for.
func trialName(t remedy.Trial) string {
	switch t.Kind {
	case remedy.AsRecorded:
		return "as it was"
	case remedy.Stitch:
		return "gmstitch run"
	case remedy.Layout:
		return "at best: a layout solved beforehand (gmplan)"
	}
	name := "PYTORCH_CUDA_ALLOC_CONF=" + t.Setting
	if t.Setting == "" {
		name = "no PYTORCH_CUDA_ALLOC_CONF"
	}
	if t.Tried > 1 && t.Met == remedy.No {
		name += " (" + units.Count(t.Tried, "value") + " tried)"
	}
	return name
}

// paragraph prints text on lines of lineWidth.
func paragraph(out *strings.Builder, text string) {
	column := 0
	for i, word := range strings.Fields(text) {
		switch width := len([]rune(word)); {
		case i == 0:
			column = width
		case column+1+width > lineWidth:
			out.WriteString("\n")
			column = width
		default:
			out.WriteString(" ")
			column += 1 + width
		}
		out.WriteString(word)
	}
	out.WriteString("\n")
}
