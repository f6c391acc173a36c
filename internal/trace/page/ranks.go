package page

import (
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"gm/internal/report"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

//go:embed assets/ranks.html
var ranksHTML string

//go:embed assets/ranks.js
var ranksJS string

// Ranks is a page about the ranks of a job: their table, their curves over one axis, and the tensors of some.
type Ranks struct {
	Title   string
	Version string        // of gm
	Facts   []string      // lines about all ranks
	Rows    *report.Table // whose first cells are the ranks of a row
	Of      [][]int64     // the ranks of each row
	Table   *ranks.Table
	Tensors *Recording // of [ranks.Table.Files]; nil if there are none to show
	All     bool       // these are all ranks
}

// The units of the picture, which is as large as the screen lets it be.
const ranksWidth, ranksHeight = 1000, 400

// tick is a text at an axis, and where it is there.
type tick struct {
	Percent float64 // from the left, or from the top
	Text    string
}

// Y returns the line of a tick of bytes.
func (t tick) Y() float64 { return t.Percent / 100 * ranksHeight }

// rankCurve is the line of ranks with the same curve.
type rankCurve struct {
	Ranks, Points, Title string
	Named                bool
	Color                int // of one with a name
}

type rankRow struct {
	Ranks string
	Cells []string
}

// Write writes the page.
func (p *Ranks) Write(w io.Writer) error {
	curves := p.Table.Curves()
	frame := frameOf(curves, p.Table.Limit())
	var rows []rankRow
	for i, cells := range p.Rows.Rows {
		rows = append(rows, rankRow{numbers(p.Of[i]), cells})
	}
	var view template.HTML
	if p.Tensors != nil {
		Fit(p.Tensors)
		var err error
		if view, err = p.Tensors.View("tensors-0"); err != nil {
			return err
		}
	}
	t, err := template.New("ranks").Parse(ranksHTML)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	err = t.Execute(w, struct {
		*Ranks
		Style         template.CSS
		Script        template.JS
		Width, Height int
		Sizes, Times  []tick
		Limit         *tick
		Curves        []rankCurve
		Titles        []string
		Rows          []rankRow
		View          template.HTML
	}{
		p, template.CSS(Style()), template.JS(Script() + ranksJS), ranksWidth, ranksHeight, frame.sizes(), frame.times(), frame.limit(p.Table.Limit()),
		frame.curves(curves), p.Rows.Titles, rows, view,
	})
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// frame is what the picture shows: from the job's beginning for a time in nanoseconds, and so many bytes.
type frame struct{ time, bytes float64 }

func frameOf(curves []ranks.Curve, capacity int64) frame {
	f := frame{1, float64(max(capacity, 1))}
	for _, c := range curves {
		for i, at := range c.AtNS {
			f.time, f.bytes = max(f.time, float64(at)), max(f.bytes, float64(c.Bytes[i]))
		}
	}
	return f
}

// x returns the percent of the width that a time is from the left.
func (f frame) x(timeNS int64) float64 { return 100 * float64(timeNS) / f.time }

// y returns the percent of the height that bytes are from the top.
func (f frame) y(bytes int64) float64 { return 100 - 100*float64(bytes)/f.bytes }

// parts is how many parts of the axes have a text each.
const parts = 4

func (f frame) sizes() []tick {
	var all []tick
	for i := range parts + 1 {
		bytes := int64(f.bytes * float64(i) / parts)
		all = append(all, tick{f.y(bytes), units.Bytes(bytes).String()})
	}
	return all
}

// times returns the ticks of time, which have three digits or so.
func (f frame) times() []tick {
	digit := time.Duration(math.Pow10(max(0, int(math.Log10(f.time))-2)))
	var all []tick
	for i := range parts + 1 {
		at := int64(f.time * float64(i) / parts)
		all = append(all, tick{f.x(at), time.Duration(at).Round(digit).String()})
	}
	return all
}

// limit is the line of the capacity; nil for none.
func (f frame) limit(bytes int64) *tick {
	if bytes == 0 {
		return nil
	}
	return &tick{f.y(bytes), "capacity " + units.Bytes(bytes).String()}
}

// curves returns a line for all ranks with the same curve, in their order.
func (f frame) curves(curves []ranks.Curve) []rankCurve {
	var all []rankCurve
	var of [][]int64
	at := map[string]int{}
	for _, c := range curves {
		var points strings.Builder
		for i, timeNS := range c.AtNS {
			fmt.Fprintf(&points, "%.0f,%.0f ", f.x(timeNS)/100*ranksWidth, f.y(c.Bytes[i])/100*ranksHeight)
		}
		i, ok := at[points.String()]
		if !ok {
			i = len(all)
			at[points.String()] = i
			all, of = append(all, rankCurve{Points: points.String()}), append(of, nil)
		}
		if c.Named && !all[i].Named {
			all[i].Named, all[i].Color = true, c.Color%report.AreaColors
		}
		of[i] = append(of[i], c.Rank.Rank)
	}
	for i := range all {
		all[i].Ranks, all[i].Title = numbers(of[i]), ranks.Names(of[i])
	}
	return all
}

// numbers returns ranks as the page's script reads them.
func numbers(of []int64) string {
	var all []string
	for _, rank := range of {
		all = append(all, strconv.FormatInt(rank, 10))
	}
	return strings.Join(all, " ")
}
