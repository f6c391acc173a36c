package report

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Block is a rectangle in a packing: the bytes [Low, High) from row Start to row End.
type Block struct {
	Start, End int64
	Low, High  int64
	Kind       int // blocks of one kind have one colour
}

// Packing is a chart of the addresses of blocks over time.
type Packing struct {
	Title  string
	Blocks []Block
}

// WritePackingPNG draws packings below each other in a PNG image.
func WritePackingPNG(w io.Writer, packings []Packing) error { return writePNG(w, pictures(packings)) }

// WritePackingSVG draws packings below each other in an SVG image.
func WritePackingSVG(w io.Writer, packings []Packing) error { return writeSVG(w, pictures(packings)) }

func pictures(packings []Packing) []drawable {
	all := make([]drawable, len(packings))
	for i := range packings {
		all[i] = &packings[i]
	}
	return all
}

func (p *Packing) plot() (*plot.Plot, error) {
	out := newPlot(p.Title)
	out.X.Label.Text = "row of the trace"
	out.Y.Label.Text = "GiB"
	out.Add(&rectangles{p.Blocks})
	return out, nil
}

// rectangles is a plotter of blocks.
type rectangles struct{ blocks []Block }

// DataRange implements plot.DataRanger.
func (r *rectangles) DataRange() (xmin, xmax, ymin, ymax float64) {
	for i, b := range r.blocks {
		if i == 0 {
			xmin = float64(b.Start)
		}
		xmin, xmax, ymax = min(xmin, float64(b.Start)), max(xmax, float64(b.End)), max(ymax, gib(b.High))
	}
	return xmin, xmax, 0, ymax
}

// leastExtent is the least width and height of a rectangle that is drawn, in points. Smaller rectangles are invisible, and
// very numerous.
const leastExtent = 0.12

// Plot implements plot.Plotter.
func (r *rectangles) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, b := range r.blocks {
		left, right, low, high := x(float64(b.Start)), x(float64(b.End)), y(gib(b.Low)), y(gib(b.High))
		if right-left < leastExtent || high-low < leastExtent {
			continue
		}
		c.FillPolygon(shade(b.Kind), []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}})
	}
}

// shade returns a colour of the palette, which gets lighter each time it wraps around.
func shade(kind int) color.Color {
	c := palette[kind%len(palette)]
	light := []uint8{0, 60, 110}[kind/len(palette)%3]
	lift := func(v uint8) uint8 { return v + uint8(int(255-v)*int(light)/255) }
	return color.NRGBA{lift(c.R), lift(c.G), lift(c.B), 0xff}
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }
