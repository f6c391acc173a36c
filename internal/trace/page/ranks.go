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

// Ranks is a page about the ranks of a job: their table, and their curves over one axis.
type Ranks struct {
	Title   string
	Version string        // of gm
	Facts   string        // what holds for all ranks
	Rows    *report.Table // whose first cells are the ranks of a row
	Of      [][]int64     // the ranks of each row
	Table   *ranks.Table
}

// The size of the picture, and the place of the curves in it.
const (
	ranksWidth, ranksHeight = 1000, 420
	ranksLeft, ranksBottom  = 70, 390
	ranksTop                = 15
)

// tick is a line of the axes with its text.
type tick struct {
	Path, Anchor, Text string
	X, Y               int
}

// rankCurve is the line of ranks with the same curve.
type rankCurve struct {
	Ranks, Points, Title string
	Named                bool
}

type rankRow struct {
	Ranks string
	Cells []string
}

// Write writes the page.
func (p *Ranks) Write(w io.Writer) error {
	curves := p.Table.Curves()
	frame := frameOf(curves, p.Table.Capacity())
	var rows []rankRow
	for i, cells := range p.Rows.Rows {
		rows = append(rows, rankRow{numbers(p.Of[i]), cells})
	}
	t, err := template.New("ranks").Parse(ranksHTML)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	err = t.Execute(w, struct {
		Title, Version, Facts string
		Style                 template.CSS
		Script                template.JS
		Width, Height         int
		Ticks                 []tick
		Limit                 *tick
		Curves                []rankCurve
		Titles                []string
		Rows                  []rankRow
	}{
		p.Title, p.Version, p.Facts, template.CSS(baseCSS), template.JS(ranksJS), ranksWidth, ranksHeight, frame.ticks(), frame.limit(p.Table.Capacity()),
		frame.curves(curves), p.Rows.Titles, rows,
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

func (f frame) x(timeNS int64) int {
	return ranksLeft + int(math.Round(float64(timeNS)/f.time*(ranksWidth-ranksLeft-10)))
}

func (f frame) y(bytes int64) int {
	return ranksBottom - int(math.Round(float64(bytes)/f.bytes*(ranksBottom-ranksTop)))
}

// parts is how many parts of the axes have a line each.
const parts = 4

func (f frame) ticks() []tick {
	var all []tick
	for i := range parts + 1 {
		at, bytes := int64(f.time*float64(i)/parts), int64(f.bytes*float64(i)/parts)
		all = append(all,
			tick{fmt.Sprintf("M%d %dH%d", ranksLeft, f.y(bytes), ranksWidth-10), "end", units.Bytes(bytes).String(), ranksLeft - 6, f.y(bytes) + 4},
			tick{
				fmt.Sprintf("M%d %dV%d", f.x(at), ranksBottom, ranksBottom+5), "middle", time.Duration(at).Round(time.Millisecond).String(),
				f.x(at), ranksBottom + 20,
			})
	}
	return all
}

// limit is the line of the capacity; nil if it is not known.
func (f frame) limit(bytes int64) *tick {
	if bytes == 0 {
		return nil
	}
	return &tick{
		Path: fmt.Sprintf("M%d %dH%d", ranksLeft, f.y(bytes), ranksWidth-10), Text: "capacity " + units.Bytes(bytes).String(),
		X: ranksLeft + 6, Y: f.y(bytes) + 12,
	}
}

// curves returns a line for all ranks with the same curve, in their order.
func (f frame) curves(curves []ranks.Curve) []rankCurve {
	var all []rankCurve
	var of [][]int64
	at := map[string]int{}
	for _, c := range curves {
		var points strings.Builder
		for i, timeNS := range c.AtNS {
			fmt.Fprintf(&points, "%d,%d ", f.x(timeNS), f.y(c.Bytes[i]))
		}
		i, ok := at[points.String()]
		if !ok {
			i = len(all)
			at[points.String()] = i
			all, of = append(all, rankCurve{Points: points.String()}), append(of, nil)
		}
		all[i].Named = all[i].Named || c.Named
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
