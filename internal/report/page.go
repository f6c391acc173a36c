package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawable is something that can be drawn as one chart under a title, with the entries of the legend beside it. Without any the chart has
// the whole width.
type drawable interface {
	plot() (*plot.Plot, error)
	keys() []key
	title() string
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
	var titles []string
	for _, d := range all {
		titles = append(titles, d.title())
	}
	return writeTitled(w, c, titles)
}

// writeTitled writes an SVG image with a title for those who cannot see it, and for the tip of a browser.
func writeTitled(w io.Writer, c *vgsvg.Canvas, titles []string) error {
	var image bytes.Buffer
	if _, err := c.WriteTo(&image); err != nil {
		return err
	}
	begin := bytes.Index(image.Bytes(), []byte("<svg"))
	end := begin + bytes.IndexByte(image.Bytes()[begin:], '>') + 1
	var text bytes.Buffer
	if err := xml.EscapeText(&text, []byte(title(strings.Join(titles, "; ")))); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s<title>%s</title>%s", image.Bytes()[:end], text.Bytes(), image.Bytes()[end:])
	return err
}

// fit leaves out charts beyond MaxCharts, and returns a placeholder if there are none.
func fit(all []drawable) []drawable {
	if len(all) == 0 {
		return []drawable{&Packing{Title: "nothing to draw"}}
	}
	return all[:min(len(all), MaxCharts)]
}

// keyStyle is the style of the names beside a chart.
func keyStyle(p *plot.Plot) text.Style {
	style := p.Legend.TextStyle
	style.Font.Size = vg.Points(10)
	return style
}

func newPlot(name string) *plot.Plot {
	p := barePlot(name)
	p.Add(plotter.NewGrid())
	return p
}

// barePlot is a plot without a grid.
func barePlot(name string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title(name)
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
		place := draw.Crop(c, 0, 0, below, below+chartHeight-c.Max.Y)
		keys := d.keys()
		if len(keys) == 0 {
			p.Draw(place)
			continue
		}
		style := keyStyle(p)
		place = draw.Crop(place, 0, -widthOf([][]key{keys}, style), vg.Points(4), -vg.Points(4))
		p.Draw(place)
		drawKeys(place, p.DataCanvas(place).Max, keys, style)
	}
	return nil
}
