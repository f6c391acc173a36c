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

// Growth is a chart of quantities as functions of another, all above 0, on logarithmic axes.
type Growth struct {
	Title, X, Y string // X and Y are the labels of the axes, with units
	Curves      []Curve
	Linear      bool // the axes begin at 0 and are not logarithmic
}

// Curve is a series of points.
type Curve struct {
	Name  string
	X, Y  []float64
	Limit bool // drawn dashed and without marks
}

// WriteGrowthPNG draws the chart as a PNG image.
func WriteGrowthPNG(w io.Writer, g Growth) error { return writePNG(w, []drawable{&g}) }

// WriteGrowthSVG draws the chart as an SVG image.
func WriteGrowthSVG(w io.Writer, g Growth) error { return writeSVG(w, []drawable{&g}) }

func (g *Growth) title() string { return g.Title }

func (g *Growth) keys() []key {
	var all []key
	for i, c := range g.Curves {
		all = append(all, key{name: title(c.Name), color: palette[i%len(palette)], line: !c.Limit, limit: c.Limit})
	}
	return all
}

func (g *Growth) plot() (*plot.Plot, error) {
	p := newPlot(g.Title)
	p.X.Label.Text, p.Y.Label.Text = g.X, g.Y
	if g.Linear {
		p.X.Min, p.Y.Min = 0, 0
	} else {
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = logTicks{}, logTicks{}
		p.Y.Min = math.Inf(1)
	}
	for i, c := range g.Curves {
		if err := c.draw(p, palette[i%len(palette)]); err != nil {
			return nil, fmt.Errorf("curve %s: %w", c.Name, err)
		}
	}
	p.X.Max *= 1.1 // room for the label of the last tick
	return p, nil
}

func (c *Curve) draw(p *plot.Plot, hue color.NRGBA) error {
	points := make(plotter.XYs, len(c.X))
	for i := range points {
		points[i] = plotter.XY{X: c.X[i], Y: c.Y[i]}
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = hue, vg.Points(1.2)
	marks.Color = hue
	p.Add(line)
	if c.Limit {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	} else {
		p.Add(marks)
	}
	return nil
}
