package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gm/internal/units"
)

// Line is a curve of bytes over time, drawn as steps.
type Line struct {
	Name   string
	TimeNS []int64
	Bytes  []int64
	Filled bool // the area below it is filled
	Failed bool // out of memory at its last moment
	Area   bool // it has a colour of areas, with its own number
	Faint  bool // thin, in grey, and below the others: one of many, without an entry in the legend
}

// Chart is a set of lines over one time axis, which begins at 0.
type Chart struct {
	Title string
	Lines []Line
	Limit int64 // bytes that there are, drawn as a dashed line; 0 for none

	FailedNS []int64 // moments at which requests failed, on the clock of the lines
}

// WritePNG draws the charts below each other in a PNG image.
func WritePNG(w io.Writer, charts []Chart) error { return writePNG(w, drawables(charts)) }

// WriteSVG draws the charts below each other in an SVG image.
func WriteSVG(w io.Writer, charts []Chart) error { return writeSVG(w, drawables(charts)) }

func drawables(charts []Chart) []drawable {
	all := make([]drawable, len(charts))
	for i := range charts {
		all[i] = &charts[i]
	}
	return all
}

// Most returns the most bytes of a line.
func (c *Chart) Most() int64 {
	most := int64(0)
	for _, l := range c.Lines {
		most = max(most, slices.Max(append([]int64{0}, l.Bytes...)))
	}
	return most
}

func (c *Chart) title() string { return c.Title }

// keys returns the entries of the lines, in their order.
func (c *Chart) keys() []key {
	var all []key
	if c.Limit > 0 {
		all = append(all, key{name: "capacity " + units.Bytes(c.Limit).String(), color: alarmColor, limit: true})
	}
	for i, l := range c.Lines {
		if l.Faint {
			continue
		}
		k := key{name: title(l.Name), color: l.color(i), line: !l.Filled, ends: l.Failed}
		if l.Failed {
			k.name += ": out of memory"
		}
		all = append(all, k)
	}
	return all
}

func (c *Chart) plot() (*plot.Plot, error) {
	p := barePlot(c.Title)
	start, end, most := int64(math.MaxInt64), int64(math.MinInt64), c.Limit
	for _, l := range c.Lines {
		if n := len(l.TimeNS); n > 0 {
			start, end, most = min(start, l.TimeNS[0]), max(end, l.TimeNS[n-1]), max(most, slices.Max(l.Bytes))
		}
	}
	for _, at := range c.FailedNS {
		end = max(end, at) // a request that ended the recording is its last event
	}
	seconds := max(float64(end-start)/1e9, 0)
	if seconds == 0 {
		seconds = 1 // a single moment is drawn one second wide
	}
	of, name := timeUnit(seconds)
	unit, bytes := units.Bytes(most).Unit()
	x, y := axis{high: seconds / of}, axis{high: max(float64(most)/unit*1.03, 1e-9)}
	timeAxis(p, x, name)
	p.Y.Label.Text, p.Y.Max, p.Y.Tick.Marker = bytes, y.high, plot.ConstantTicks(y.ticks())
	p.Add(&grid{x, y})
	if c.Limit > 0 {
		p.Add(&level{at: float64(c.Limit) / unit, x: x})
	}
	c.mark(p, start, 1/of, x, y)
	var ends plotter.XYs
	for _, faint := range []bool{true, false} {
		for i, l := range c.Lines {
			if l.Faint != faint {
				continue
			}
			points, err := l.draw(p, i, scale{start, of, unit, x.high})
			if err != nil {
				return nil, fmt.Errorf("line %s: %w", l.Name, err)
			}
			if l.Failed && len(points) > 0 {
				ends = append(ends, points[len(points)-1])
			}
		}
	}
	if len(ends) == 0 {
		return p, nil
	}
	failures, err := plotter.NewScatter(ends)
	if err != nil {
		return nil, err
	}
	failures.GlyphStyle = failed
	p.Add(failures)
	return p, nil
}

// mark draws the moments at which requests failed, and leaves room for their names.
func (c *Chart) mark(p *plot.Plot, start int64, unit float64, x, y axis) {
	var all []Mark
	for _, at := range c.FailedNS {
		if m := (Mark{At: float64(at-start) / 1e9, Name: "OOM", Alarm: true}); m.At >= 0 {
			all = append(all, m)
		}
	}
	if len(all) > 0 {
		p.Add(&marks{all, unit, x, y})
		p.Title.Padding = vg.Points(14)
	}
}

// scale is how a line is drawn: its start in nanoseconds, a unit of time in seconds, a unit of bytes, and the end of the axis.
type scale struct {
	start      int64
	time, unit float64
	end        float64
}

// color returns the colour of the line with a number.
func (l *Line) color(number int) color.NRGBA {
	if l.Filled {
		return color.NRGBA{0xc8, 0xc8, 0xc8, 0xff}
	}
	if l.Area {
		return AreaColor(number)
	}
	return palette[number%len(palette)]
}

// failed is the mark at which a line ends that ran out of memory.
var failed = draw.GlyphStyle{Color: alarmColor, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}

// draw adds the line with a number to a plot, and returns its points: none for an allocator that could not begin.
func (l *Line) draw(p *plot.Plot, number int, s scale) (plotter.XYs, error) {
	points := make(plotter.XYs, len(l.TimeNS), len(l.TimeNS)+1)
	if len(points) == 0 {
		return nil, nil
	}
	for i := range points {
		points[i] = plotter.XY{X: float64(l.TimeNS[i]-s.start) / 1e9 / s.time, Y: float64(l.Bytes[i]) / s.unit}
	}
	if last := points[len(points)-1]; last.X == points[0].X && !l.Failed {
		points = append(points, plotter.XY{X: s.end, Y: last.Y})
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.StepStyle, line.Color, line.Width = plotter.PostStep, l.color(number), vg.Points(1.2)
	if l.Faint {
		line.Color, line.Width = color.NRGBA{0xb0, 0xb0, 0xb0, 0xff}, vg.Points(0.4)
	}
	if l.Filled {
		line.FillColor, line.Color, line.Width = l.color(number), color.NRGBA{0x90, 0x90, 0x90, 0xff}, vg.Points(0.5)
	}
	p.Add(line)
	return points, nil
}
