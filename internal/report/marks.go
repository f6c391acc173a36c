package report

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of what is drawn over a chart.
var (
	alarmColor = color.NRGBA{0xc4, 0x13, 0x2f, 0xff}
	markColor  = color.NRGBA{0x60, 0x60, 0x60, 0xff}
)

// level is a dashed line across a chart: a limit.
type level struct {
	at float64
	x  axis
}

// dashed is the style of a limit.
var dashed = draw.LineStyle{Color: alarmColor, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(5), vg.Points(3)}}

// Plot implements plot.Plotter.
func (l *level) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	c.StrokeLine2(dashed, x(l.x.low), y(l.at), x(l.x.high), y(l.at))
}

// marks are lines at moments, with their names above the chart as far as there is room. Failures come first.
type marks struct {
	all  []Mark
	unit float64 // by which a place is multiplied on the axis
	x, y axis
}

// lineOfMarks is the height of a line of names.
const lineOfMarks = vg.Length(10)

// Plot implements plot.Plotter.
func (m *marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := keyStyle(p)
	style.Font.Size = vg.Points(8)
	style.XAlign, style.YAlign = text.XCenter, text.YBottom
	var taken [2][][2]vg.Length // in both lines of names
	for _, alarm := range []bool{true, false} {
		line := draw.LineStyle{Color: markColor, Width: vg.Points(0.4), Dashes: []vg.Length{vg.Points(1), vg.Points(2)}}
		if alarm {
			line = draw.LineStyle{Color: alarmColor, Width: vg.Points(1)}
		}
		style.Color = line.Color
		for _, mark := range m.all {
			if mark.Alarm != alarm {
				continue
			}
			at, half := x(mark.At*m.unit), style.Width(mark.Name)*slack/2
			c.StrokeLine2(line, at, y(m.y.low), at, y(m.y.high))
			names, up := &taken[0], vg.Points(1)
			if mark.Above {
				names, up = &taken[1], vg.Points(1)+lineOfMarks
			}
			at = max(min(at, x(m.x.high)-half), x(m.x.low)+half)
			if free(*names, at-half, at+half) {
				c.FillText(style, vg.Point{X: at, Y: y(m.y.high) + up}, mark.Name)
				*names = append(*names, [2]vg.Length{at - half, at + half})
			}
		}
	}
}

// free reports whether a name from low to high overlaps no other.
func free(taken [][2]vg.Length, low, high vg.Length) bool {
	for _, other := range taken {
		if low < other[1]+gap/2 && high > other[0]-gap/2 {
			return false
		}
	}
	return true
}
