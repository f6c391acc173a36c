package report

import (
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gm/internal/units"
)

// Block is a rectangle in a packing: the bytes [Low, High) from row Start to row End.
type Block struct {
	Start, End int64
	Low, High  int64
	Kind       int // number of its kind, which decides its colour
	Shade      int // 0 to 2, tells neighbours of one kind apart
}

// Packing is a chart of the addresses of blocks over time.
type Packing struct {
	Title  string
	Rows   string   // what rows are counted in, such as "row of the trace"
	Kinds  []string // names of the kinds
	Rest   bool     // the last kind is everything without a name of its own, and grey
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

func (p *Packing) title() string { return p.Title }

// keys returns the entries of the kinds that there are.
func (p *Packing) keys() []key {
	var all []key
	for kind, name := range p.Kinds {
		if slices.ContainsFunc(p.Blocks, func(b Block) bool { return b.Kind == kind }) {
			all = append(all, key{name: title(name), color: p.shade(kind, 0)})
		}
	}
	return all
}

func (p *Packing) plot() (*plot.Plot, error) {
	out := barePlot(p.Title)
	r := &rectangles{blocks: p.Blocks, shade: p.shade}
	first, last, most := r.extent()
	unit, name := units.Bytes(most).Unit()
	x, y := axis{low: float64(first), high: max(float64(last), float64(first)+1)}, axis{high: max(float64(most)/unit, 1e-9)}
	r.unit = unit
	timeAxis(out, x, p.Rows)
	out.Y.Label.Text, out.Y.Max, out.Y.Tick.Marker = name, y.high, plot.ConstantTicks(y.ticks())
	out.Add(&grid{x, y}, r)
	return out, nil
}

// rectangles is a plotter of blocks.
type rectangles struct {
	blocks []Block
	unit   float64 // bytes
	shade  func(kind, number int) color.Color
}

// extent returns the first and the last row, and the highest byte.
func (r *rectangles) extent() (first, last, most int64) {
	for i, b := range r.blocks {
		if i == 0 {
			first = b.Start
		}
		first, last, most = min(first, b.Start), max(last, b.End), max(most, b.High)
	}
	return first, last, most
}

// leastExtent is the least width and height of a rectangle that is drawn, in points. Smaller rectangles are invisible, and
// very numerous.
const leastExtent = 0.12

// Plot implements plot.Plotter.
func (r *rectangles) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, b := range r.blocks {
		left, right, low, high := x(float64(b.Start)), x(float64(b.End)), y(float64(b.Low)/r.unit), y(float64(b.High)/r.unit)
		if right-left < leastExtent || high-low < leastExtent {
			continue
		}
		c.FillPolygon(r.shade(b.Kind, b.Shade), []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}})
	}
}

// shade returns the colour of a kind, lighter for a higher shade.
func (p *Packing) shade(kind, number int) color.Color {
	c := AreaColor(kind)
	if p.Rest && kind == len(p.Kinds)-1 {
		c = RestColor
	}
	light := []int{0, 50, 90}[number%3]
	lift := func(v uint8) uint8 { return v + uint8(int(255-v)*light/255) }
	return color.NRGBA{lift(c.R), lift(c.G), lift(c.B), 0xff}
}
