package report

import (
	"fmt"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawable is something that can be drawn as one chart.
type drawable interface {
	plot() (*plot.Plot, error)
}

// The size of a chart.
const (
	chartWidth  = 24 * vg.Centimeter
	chartHeight = 12 * vg.Centimeter
	chartDPI    = 144
)

// MaxCharts is the most charts of an image. More would make it too large to view.
const MaxCharts = 24

func writePNG(w io.Writer, all []drawable) error {
	all = fit(all)
	c := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight*vg.Length(len(all))), vgimg.UseDPI(chartDPI))
	if err := drawAll(draw.New(c), all); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

func writeSVG(w io.Writer, all []drawable) error {
	all = fit(all)
	c := vgsvg.New(chartWidth, chartHeight*vg.Length(len(all)))
	if err := drawAll(draw.New(c), all); err != nil {
		return err
	}
	_, err := c.WriteTo(w)
	return err
}

// fit leaves out charts beyond MaxCharts, and returns a placeholder if there are none.
func fit(all []drawable) []drawable {
	if len(all) == 0 {
		return []drawable{&Packing{Title: "nothing to draw"}}
	}
	return all[:min(len(all), MaxCharts)]
}

func newPlot(text string) *plot.Plot {
	p := barePlot(text)
	p.Add(plotter.NewGrid())
	return p
}

// barePlot is a plot without a grid.
func barePlot(text string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title(text)
	p.Title.Padding = vg.Points(6)
	p.Y.Min = 0
	for _, style := range []*draw.TextStyle{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
	}
	return p
}

// drawAll draws charts below each other.
func drawAll(c draw.Canvas, all []drawable) error {
	for i, d := range all {
		p, err := d.plot()
		if err != nil {
			return fmt.Errorf("draw a chart: %w", err)
		}
		below := chartHeight * vg.Length(len(all)-1-i)
		p.Draw(draw.Crop(c, 0, 0, below, below+chartHeight-c.Max.Y))
	}
	return nil
}
