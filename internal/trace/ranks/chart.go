package ranks

import (
	"fmt"
	"math"
	"slices"

	"gm/internal/report"
)

// Curve is the live bytes of one row of a table, in nanoseconds since the job began.
type Curve struct {
	*Rank
	AtNS  []int64
	Named bool // among the few that get a name in a picture
	Color int  // number of the colour of one with a name, as of [report.AreaColor]
}

// named is how many curves have a colour and a name in a picture.
const named = 6

// Curves returns the curves of all rows on one axis of time, without those whose clock differs. The first rank of each of the first sequences
// of requests is named, and so is the one that needs most.
func (t *Table) Curves() []Curve {
	start := int64(math.MaxInt64)
	for _, r := range t.Ranks {
		if !r.Clock {
			start = min(start, r.StartNS)
		}
	}
	var all []Curve
	seen, colors := map[int]bool{}, 0
	for i, r := range t.Ranks {
		if r.Clock {
			continue
		}
		c := Curve{Rank: r, Named: i == t.First || !seen[r.Sequence] && len(seen) < named, AtNS: make([]int64, len(r.TimeNS))}
		if seen[r.Sequence] = true; c.Named {
			c.Color = colors
			colors++
		}
		for k, at := range r.TimeNS {
			c.AtNS[k] = at + r.StartNS - start
		}
		all = append(all, c)
	}
	return all
}

// mostInFull is how many ranks are shown with all their tensors, without a choice.
const mostInFull = 8

// Files returns the traces to show with all their tensors: all if they are few, else those with a name in a picture.
func (t *Table) Files() (files []string, all bool) {
	every := map[string]bool{}
	for _, c := range t.Curves() {
		every[c.File] = true
	}
	all = len(every) <= mostInFull
	for _, c := range t.Curves() {
		if (all || c.Named) && !slices.Contains(files, c.File) {
			files = append(files, c.File)
		}
	}
	return files, all
}

// Chart draws the curves: those without a name thin and below the others.
func (t *Table) Chart(title string) report.Chart {
	chart := report.Chart{Title: title, Limit: t.Limit()}
	var faint []report.Line
	for _, c := range t.Curves() {
		l := report.Line{Name: c.name(), TimeNS: c.AtNS, Bytes: c.Bytes, Faint: !c.Named, Area: true}
		if c.Named {
			chart.Lines = append(chart.Lines, l)
		} else {
			faint = append(faint, l)
		}
	}
	chart.Lines = append(chart.Lines, faint...)
	return chart
}

// Limit returns the bytes of the largest GPU where curves come near that, else 0: they would be flat.
func (t *Table) Limit() int64 {
	capacity, most := int64(0), int64(0)
	for _, r := range t.Ranks {
		capacity, most = max(capacity, r.Capacity), max(most, r.Peak)
	}
	if report.Near(capacity, most) {
		return capacity
	}
	return 0
}

// name names a rank, and its GPU if that is not the first.
func (r *Rank) name() string {
	text := Name(r.Rank)
	if r.Device > 0 {
		text += fmt.Sprintf(", device %d", r.Device)
	}
	return text
}
