package report

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Line is a curve of bytes over time, drawn as steps.
type Line struct {
	Name   string
	TimeNS []int64
	Bytes  []int64
	Filled bool // the area below it is filled
}

// Chart is a set of lines over one time axis, which begins at 0.
type Chart struct {
	Title string
	Lines []Line
}

// palette is the colour-blind-safe palette of Okabe and Ito without yellow.
var palette = [...]color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0x56, 0xb4, 0xe9, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x00, 0x00, 0xff},
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

// manyLines is from how many lines on the names are set smaller, so that they cover less of the chart.
const manyLines = 6

func (c *Chart) plot() (*plot.Plot, error) {
	p := newPlot(c.Title)
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = "GiB"
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.YOffs = -vg.Points(4)
	p.Legend.XOffs = vg.Points(6)
	p.Legend.Padding = vg.Points(3)
	if len(c.Lines) > manyLines {
		p.Legend.Padding = vg.Points(1)
		p.Legend.TextStyle.Font.Size *= 0.85
	}
	start := int64(math.MaxInt64)
	for _, l := range c.Lines {
		if len(l.TimeNS) > 0 {
			start = min(start, l.TimeNS[0])
		}
	}
	for i := range c.Lines {
		line, err := c.Lines[i].plotter(start, palette[i%len(palette)])
		if err != nil {
			return nil, err
		}
		p.Add(line)
		p.Legend.Add(title(c.Lines[i].Name), line)
	}
	p.Y.Max *= 1.02
	return p, nil
}

func (l *Line) plotter(start int64, c color.NRGBA) (*plotter.Line, error) {
	points := make(plotter.XYs, len(l.TimeNS), len(l.TimeNS)+1)
	for i := range points {
		points[i] = plotter.XY{X: float64(l.TimeNS[i]-start) / 1e9, Y: gib(l.Bytes[i])}
	}
	if n := len(points); n > 0 && points[n-1].X == points[0].X {
		points = append(points, plotter.XY{X: points[0].X + 1, Y: points[n-1].Y}) // a single moment is drawn one second wide
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, fmt.Errorf("line %s: %w", l.Name, err)
	}
	line.StepStyle = plotter.PostStep
	line.Color = c
	line.Width = vg.Points(1.2)
	if l.Filled {
		line.FillColor = color.NRGBA{0xc8, 0xc8, 0xc8, 0xff}
		line.Color = color.NRGBA{0x90, 0x90, 0x90, 0xff}
		line.Width = vg.Points(0.5)
	}
	return line, nil
}
