package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"gm/internal/bench"
	"gm/internal/bench/why"
	"gm/internal/report"
	tensors "gm/internal/trace/page"
	"gm/internal/units"
)

// view is a section as text for the page.
type view struct {
	*Section
	Rows     []rowView
	Verdict  string
	Summary  string
	Alarms   string // what is red in the curves
	Mapped   string
	Accounts []accountView
	Losses   []lossView
	Pinned   []pinnedView
	Groups   []groupView
	Notes    []tensors.Note
	Tensors  template.HTML // "" for a plan
}

type rowView struct {
	bench.Row
	Color                     int
	ReservedBar, AllocatedBar float64 // percent of the most that any allocator reserves
	Used, Change, Share, Fate string
}

type accountView struct {
	Allocator string
	Lost      int64
	Share     string
}

// lossView is a cause of lost memory, with the bytes of each account.
type lossView struct {
	Name, About string
	Bytes       []int64
}

type pinnedView struct {
	Allocator string
	Pins      []pinView
}

type pinView struct {
	why.Pin
	Stack stackView
	Free  int64
}

type groupView struct {
	Group
	Stack stackView
	Share string
}

// stackView is a stack in one line, and all its frames, innermost first. It has no frames if the line is complete.
type stackView struct {
	Short  string
	Frames []string
}

const (
	stackLine = 100 // characters of a stack that are shown
	shownPins = 5   // segments of an allocator that are shown
	colors    = 8
)

func newView(s *Section) view {
	v := view{Section: s, Summary: s.summary(), Alarms: s.alarms(), Verdict: s.verdict()}
	if s.places != nil {
		v.Mapped = s.mapped
	}
	if s.Tensors != nil {
		v.Notes = s.Tensors.Notes
	}
	widest := int64(1)
	for _, r := range s.Rows {
		widest = max(widest, r.PeakReserved)
	}
	for i, r := range s.Rows {
		v.Rows = append(v.Rows, newRowView(r, i%colors, widest))
	}
	for _, a := range s.Accounts {
		if a.Reserved > 0 {
			v.addAccount(a)
		}
	}
	v.dropEmptyLosses()
	for _, g := range s.Top.Groups {
		v.Groups = append(v.Groups, groupView{g, newStackView(g.Name, s.Top.Stacked), percent(float64(g.Bytes) / float64(s.Top.Live))})
	}
	return v
}

func newRowView(r bench.Row, color int, widest int64) rowView {
	v := rowView{
		Row: r, Color: color, Used: "-", Change: "-", Share: percent(r.DriverShare),
		ReservedBar: 100 * float64(r.PeakReserved) / float64(widest), AllocatedBar: 100 * float64(r.PeakAllocated) / float64(widest),
	}
	if r.PeakReserved > 0 {
		v.Used = percent(r.Utilisation)
	}
	if r.Reduction != nil {
		if v.Change = fmt.Sprintf("%+.1f%%", -100**r.Reduction); v.Change == "-0.0%" || v.Change == "+0.0%" {
			v.Change = "0.0%"
		}
	}
	if r.OOM != nil {
		at := fmt.Sprintf("at row %d", r.OOM.Row)
		if r.OOM.Row < 0 {
			at = "before the first row"
		}
		v.Fate = fmt.Sprintf("Out of memory %s: %s asked, %s allocated, %s reserved.", at, units.Bytes(r.OOM.Size),
			units.Bytes(r.OOM.Allocated), units.Bytes(r.OOM.Reserved))
	}
	return v
}

func (v *view) addAccount(a *why.Account) {
	lost := a.Reserved - a.Requested
	v.Accounts = append(v.Accounts, accountView{a.Allocator, lost, percent(float64(lost) / float64(a.Reserved))})
	for i, part := range a.Parts {
		if i == len(v.Losses) {
			v.Losses = append(v.Losses, lossView{Name: part.Name, About: part.About})
		}
		v.Losses[i].Bytes = append(v.Losses[i].Bytes, part.Bytes)
	}
	if len(a.Pins) == 0 {
		return
	}
	pinned := pinnedView{Allocator: a.Allocator}
	for _, p := range a.Pins[:min(len(a.Pins), shownPins)] {
		pinned.Pins = append(pinned.Pins, pinView{p, newStackView(p.Stack, true), p.Reserved - p.Live})
	}
	v.Pinned = append(v.Pinned, pinned)
}

// dropEmptyLosses leaves out causes by which nothing is lost.
func (v *view) dropEmptyLosses() {
	var kept []lossView
	for _, loss := range v.Losses {
		for _, bytes := range loss.Bytes {
			if bytes != 0 {
				kept = append(kept, loss)
				break
			}
		}
	}
	v.Losses = kept
}

func newStackView(name string, stack bool) stackView {
	if !stack {
		return stackView{Short: name}
	}
	v := stackView{Short: report.Printable(report.Stack(name, stackLine))}
	if name == "" {
		return v
	}
	frames := strings.Split(name, ";")
	for i := len(frames) - 1; i >= 0; i-- {
		v.Frames = append(v.Frames, report.Printable(frames[i]))
	}
	return v
}

// summary describes the curves in words.
func (s *Section) summary() string {
	var parts []string
	for _, r := range s.Rows {
		parts = append(parts, fmt.Sprintf("%s %s", r.Allocator, units.Bytes(r.PeakReserved)))
	}
	return "Most bytes reserved: " + strings.Join(parts, ", ") + "."
}

// alarms says what is red in the curves.
func (s *Section) alarms() string {
	var all []string
	if len(s.failed) > 0 {
		all = append(all, "A red line is a request that failed while the trace was recorded.")
	}
	if slices.ContainsFunc(s.Rows, func(r bench.Row) bool { return s.died(&r) != nil }) {
		all = append(all, "A red dot is where an allocator ran out of memory.")
	}
	return strings.Join(all, " ")
}

// verdict names the allocator that reserves least.
func (s *Section) verdict() string {
	var least *bench.Row
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.OOM == nil && !r.Bound && (least == nil || r.PeakReserved < least.PeakReserved) {
			least = r
		}
	}
	if least == nil {
		return ""
	}
	reserved, allocated := units.Bytes(least.PeakReserved), units.Bytes(least.PeakAllocated)
	return fmt.Sprintf("%s reserves least: %s for %s allocated.", least.Allocator, reserved, allocated)
}

func percent(x float64) string {
	if x > 10 {
		return ">1000%"
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}
