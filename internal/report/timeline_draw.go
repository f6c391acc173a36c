package report

import (
	"image"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gm/internal/units"
)

// areas draws bytes over time.
func (t *Timeline) areas(x axis, unitOfTime string) *plot.Plot {
	p := barePlot(t.Title)
	timeAxis(p, x, unitOfTime)
	tops := t.tops()
	most := t.most()
	limited := t.limited(most)
	if limited {
		most = max(most, t.Limit)
	}
	unit, name := units.Bytes(most).Unit()
	p.Y.Label.Text = "live " + name
	y := axis{low: 0, high: max(float64(most)/unit*1.03, 1e-9)}
	p.Y.Max = y.high
	p.Y.Tick.Marker = plot.ConstantTicks(y.ticks())
	p.Add(&grid{x, y})
	if t.Held != nil {
		held := make([]float64, len(t.Held))
		for column, bytes := range t.Held {
			held[column] = float64(bytes)
		}
		p.Add(&steps{values: held, x: x, unit: unit, line: heldColor})
	}
	for i := len(tops) - 1; i >= 0; i-- { // the lower ones over the higher ones
		p.Add(&steps{values: tops[i], x: x, unit: unit, fill: t.color(i)})
	}
	if limited {
		p.Add(&level{at: float64(t.Limit) / unit, x: x})
	}
	t.mark(p, x, y)
	return p
}

// mark draws the marks of the timeline over a chart, and leaves room for their names.
func (t *Timeline) mark(p *plot.Plot, x, y axis) {
	if len(t.Marks) > 0 {
		p.Add(&marks{t.Marks, x.high / t.End, x, y})
		p.Title.Padding = vg.Points(14)
		if slices.ContainsFunc(t.Marks, func(m Mark) bool { return m.Above }) {
			p.Title.Padding += lineOfMarks
		}
	}
}

// tops returns the upper edge of each area, in bytes by column.
func (t *Timeline) tops() [][]float64 {
	sums := make([]float64, columnsOf(t.Areas))
	tops := make([][]float64, len(t.Areas))
	for i, a := range t.Areas {
		for column, bytes := range a.Bytes {
			sums[column] += float64(bytes)
		}
		tops[i] = slices.Clone(sums)
	}
	return tops
}

// most returns the most bytes that live or are held in a column.
func (t *Timeline) most() int64 {
	most := int64(0)
	if tops := t.tops(); len(tops) > 0 {
		for _, bytes := range tops[len(tops)-1] {
			most = max(most, int64(bytes))
		}
	}
	for _, bytes := range t.Held {
		most = max(most, bytes)
	}
	return most
}

// limited reports whether the limit is near enough to be drawn above most bytes.
func (t *Timeline) limited(most int64) bool { return Near(t.Limit, most) }

// Near reports whether a capacity is known, and not so far above the most bytes of a chart that it would make the rest small.
func Near(capacity, most int64) bool { return capacity > 0 && float64(capacity) < 1.5*float64(most) }

// timeAxis sets the time axis of a chart.
func timeAxis(p *plot.Plot, x axis, unit string) {
	p.X.Label.Text = unit
	p.X.Min, p.X.Max = x.low, x.high
	p.X.Tick.Marker = plot.ConstantTicks(x.ticks())
}

func columnsOf(areas []Area) int {
	if len(areas) == 0 {
		return 0
	}
	return len(areas[0].Bytes)
}

// The colours of everything but areas.
var (
	heldColor = color.NRGBA{0x30, 0x30, 0x30, 0xff}
	freeColor = color.NRGBA{0xe9, 0xe9, 0xe9, 0xff}
)

// color returns the colour of an area.
func (t *Timeline) color(area int) color.NRGBA {
	if t.Areas[area].Rest {
		return RestColor
	}
	return AreaColor(t.Areas[area].Color)
}

// steps is a line of steps, or the area below it.
type steps struct {
	values []float64
	x      axis // from the first column to the end of the last
	unit   float64
	fill   color.Color // nil for none
	line   color.Color // nil for none
}

// Plot implements plot.Plotter.
func (s *steps) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var points []vg.Point
	for i, v := range s.values {
		at := y(v / s.unit)
		points = append(points, vg.Point{X: x(s.x.part(i, len(s.values))), Y: at}, vg.Point{X: x(s.x.part(i+1, len(s.values))), Y: at})
	}
	if len(points) == 0 {
		return
	}
	if s.line != nil {
		c.StrokeLines(draw.LineStyle{Color: s.line, Width: vg.Points(0.8)}, points)
		return
	}
	points = append(points, vg.Point{X: points[len(points)-1].X, Y: y(0)}, vg.Point{X: points[0].X, Y: y(0)})
	c.FillPolygon(s.fill, points)
}

// addresses draws the map.
func (t *Timeline) addresses(x axis, unitOfTime string) *plot.Plot {
	p := barePlot("who holds which addresses, those never used left out")
	timeAxis(p, x, unitOfTime)
	unit, name := units.Bytes(t.Map.Bytes).Unit()
	p.Y.Label.Text = name + " of addresses"
	y := axis{low: 0, high: float64(t.Map.Bytes) / unit}
	p.Y.Max = y.high
	p.Y.Tick.Marker = plot.ConstantTicks(y.ticks())
	p.Add(&raster{t, x, y.high})
	t.mark(p, x, y)
	return p
}

// raster is the map as a bitmap.
type raster struct {
	of   *Timeline
	x    axis
	ymax float64
}

// Plot implements plot.Plotter. The bitmap has the aspect ratio of its place, since SVG readers preserve it.
func (r *raster) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	place := vg.Rectangle{Min: vg.Point{X: x(r.x.low), Y: y(0)}, Max: vg.Point{X: x(r.x.high), Y: y(r.ymax)}}
	columns := columnsOf(r.of.Areas)
	if columns == 0 {
		return
	}
	size := place.Size()
	rows := max(int(float64(columns)*float64(size.Y/size.X)), 1)
	picture := image.NewNRGBA(image.Rect(0, 0, columns, rows))
	for column := range columns {
		for row := range rows {
			picture.SetNRGBA(column, rows-1-row, r.of.cell(column, row*r.of.Map.Rows/rows))
		}
	}
	c.DrawImage(place, picture)
}

// cell mixes the colours of a cell.
func (t *Timeline) cell(column, row int) color.NRGBA {
	m := mixture{}
	for area := range t.Areas {
		m.add(t.color(area), int(t.Map.Part(column, row, area)))
	}
	m.add(freeColor, int(t.Map.Held(column, row))-m.parts)
	m.add(color.NRGBA{0xff, 0xff, 0xff, 0xff}, 255-m.parts)
	return m.color()
}

// mixture is a weighted sum of colours.
type mixture struct{ r, g, b, parts int }

func (m *mixture) add(c color.NRGBA, parts int) {
	if parts <= 0 {
		return
	}
	m.r, m.g, m.b, m.parts = m.r+int(c.R)*parts, m.g+int(c.G)*parts, m.b+int(c.B)*parts, m.parts+parts
}

func (m *mixture) color() color.NRGBA {
	n := max(m.parts, 1)
	return color.NRGBA{uint8(m.r / n), uint8(m.g / n), uint8(m.b / n), 0xff}
}
