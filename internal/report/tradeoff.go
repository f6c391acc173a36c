package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Tradeoff is a chart that compares methods by two quantities; lower is better for both. The axes span the points, and Y is logarithmic if
// its range is large. A curve with one point is drawn as a mark, one that is a limit has no marks, and one without points is left out.
type Tradeoff struct {
	Title, X, Y string
	Curves      []Curve // the most important ones first
}

// WriteTradeoffPNG draws the chart as a PNG image.
func WriteTradeoffPNG(w io.Writer, t Tradeoff) error { return writePNG(w, []drawable{&t}) }

// WriteTradeoffSVG draws the chart as an SVG image.
func WriteTradeoffSVG(w io.Writer, t Tradeoff) error { return writeSVG(w, []drawable{&t}) }

// legendPart is the fraction of an image's width that the legend takes.
const legendPart = 0.2

func (t *Tradeoff) title() string { return t.Title }

func (t *Tradeoff) keys() []key { return nil } // they are in the part of the chart that is left free

func (t *Tradeoff) plot() (*plot.Plot, error) {
	p := barePlot(t.Title)
	x, y := t.axes()
	p.X.Label.Text, p.Y.Label.Text = t.X, t.Y
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = x.low, x.high+(x.high-x.low)*legendPart/(1-legendPart), y.low, y.high
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(x.ticks()), plot.ConstantTicks(y.ticks())
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	p.Add(&grid{x, y})
	lines := make([]*line, len(t.Curves))
	for i := len(t.Curves) - 1; i >= 0; i-- { // the first on top
		var err error
		if lines[i], err = newLine(&t.Curves[i], i, y); err != nil {
			return nil, fmt.Errorf("curve %s: %w", t.Curves[i].Name, err)
		}
		lines[i].draw(p)
	}
	for _, l := range lines {
		l.name(p)
	}
	return p, nil
}

// axes returns the ranges of the axes.
func (t *Tradeoff) axes() (x, y axis) {
	x, y = axis{low: math.Inf(1), high: math.Inf(-1)}, axis{low: math.Inf(1), high: math.Inf(-1)}
	for _, c := range t.Curves {
		for i := range c.X {
			x.low, x.high = min(x.low, c.X[i]), max(x.high, c.X[i])
			y.low, y.high = min(y.low, c.Y[i]), max(y.high, c.Y[i])
		}
	}
	if y.low > 0 && y.high > logarithmicFrom*y.low {
		y = axis{math.Log10(y.low), math.Log10(y.high), true}
	}
	return x.padded(), y.padded()
}

// line is a drawn curve.
type line struct {
	curve *Curve
	plain *plotter.Line // nil without points
	marks *plotter.Scatter
}

// glyphs are the marks of curves. Each is used with all colours before the next one.
var glyphs = [...]draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.BoxGlyph{}, draw.CrossGlyph{}}

// newLine makes a line of the curve with an index.
func newLine(c *Curve, number int, y axis) (_ *line, err error) {
	l := &line{curve: c}
	points := make(plotter.XYs, len(c.X))
	for i := range points {
		points[i] = plotter.XY{X: c.X[i], Y: y.place(c.Y[i])}
	}
	if len(points) == 0 {
		return l, nil
	}
	if l.plain, l.marks, err = plotter.NewLinePoints(points); err != nil {
		return nil, err
	}
	l.plain.Color, l.plain.Width = palette[number%len(palette)], vg.Points(1.2)
	l.marks.Color, l.marks.Radius = l.plain.Color, vg.Points(2.8)
	l.marks.Shape = glyphs[number/len(palette)%len(glyphs)]
	if c.Limit {
		l.plain.Color, l.plain.Dashes = color.Gray{0x60}, []vg.Length{vg.Points(4), vg.Points(3)}
	}
	return l, nil
}

func (l *line) draw(p *plot.Plot) {
	if l.plain == nil {
		return
	}
	p.Add(l.plain)
	if !l.curve.Limit {
		p.Add(l.marks)
	}
}

// name adds the line to the legend.
func (l *line) name(p *plot.Plot) {
	switch {
	case l.plain == nil:
	case l.curve.Limit:
		p.Legend.Add(title(l.curve.Name), l.plain)
	default:
		p.Legend.Add(title(l.curve.Name), l.plain, l.marks)
	}
}

// axis is the range of an axis: of numbers, or of their logarithms to base 10.
type axis struct {
	low, high   float64
	logarithmic bool
}

// logarithmicFrom is the ratio of the largest to the smallest number from which on an axis is logarithmic.
const logarithmicFrom = 4

// place returns the position of a number on the axis.
func (a axis) place(x float64) float64 {
	if a.logarithmic {
		return math.Log10(x)
	}
	return x
}

// part returns the beginning of the i-th of n equal parts of the axis.
func (a axis) part(i, n int) float64 { return a.low + (a.high-a.low)*float64(i)/float64(n) }

// padded extends the axis so that the outermost marks are not cut off.
func (a axis) padded() axis {
	if a.low > a.high {
		return axis{0, 1, false}
	}
	pad := (a.high - a.low) / 30
	if pad == 0 {
		pad = math.Max(math.Abs(a.high)/10, 1e-9)
	}
	return axis{a.low - pad, a.high + pad, a.logarithmic}
}

// mostTicks is the most numbers on an axis that is not logarithmic.
const mostTicks = 10

// ticks returns round numbers on the axis.
func (a axis) ticks() []plot.Tick {
	if a.logarithmic {
		return a.logarithmicTicks()
	}
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/mostTicks)))
	for _, times := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (a.high-a.low)/step <= mostTicks {
			break
		}
		step *= times
	}
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var ticks []plot.Tick
	for i := math.Ceil(a.low / step); i*step <= a.high; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return ticks
}

// logarithmicTicks returns round numbers with few digits.
func (a axis) logarithmicTicks() []plot.Tick {
	var ticks []plot.Tick
	for power := math.Floor(a.low); power <= a.high; power++ {
		for _, digit := range []float64{1, 1.5, 2, 3, 5, 7} {
			if x := digit * math.Pow(10, power); a.place(x) >= a.low && a.place(x) <= a.high {
				ticks = append(ticks, plot.Tick{Value: a.place(x), Label: strconv.FormatFloat(x, 'g', -1, 64)})
			}
		}
	}
	return ticks
}

// grid draws lines at the ticks, up to the legend.
type grid struct{ x, y axis }

// Plot implements plot.Plotter.
func (g *grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: color.Gray{0xe0}, Width: vg.Points(0.5)}
	for _, t := range g.x.ticks() {
		c.StrokeLine2(style, x(t.Value), y(g.y.low), x(t.Value), y(g.y.high))
	}
	for _, t := range g.y.ticks() {
		c.StrokeLine2(style, x(g.x.low), y(t.Value), x(g.x.high), y(t.Value))
	}
}
