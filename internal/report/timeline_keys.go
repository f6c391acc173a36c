package report

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"gm/internal/units"
)

// key is an entry of the legend.
type key struct {
	name  string
	color color.Color
	line  bool
	limit bool // a dashed line
	ends  bool // a line with the mark of a failure
}

// keys returns the entries for the areas, the topmost first.
func (t *Timeline) keys() []key {
	var all []key
	if t.Limit > 0 && t.limited(t.most()) {
		all = append(all, key{name: "capacity " + units.Bytes(t.Limit).String(), color: alarmColor, limit: true})
	}
	if t.Held != nil {
		all = append(all, key{name: "reserved", color: heldColor, line: true})
	}
	for i := len(t.Areas) - 1; i >= 0; i-- {
		for _, bytes := range t.Areas[i].Bytes {
			if bytes > 0 {
				all = append(all, key{name: title(t.Areas[i].Name), color: t.color(i)})
				break
			}
		}
	}
	return all
}

// mapKeys returns the additional entries for the map.
func (t *Timeline) mapKeys() []key {
	if t.Held == nil {
		return nil
	}
	return []key{{name: "reserved and free", color: freeColor}}
}

// The size of a patch of colour, and the gap between it and the chart or its name.
const (
	patch = vg.Length(10)
	gap   = vg.Length(6)
	slack = 1.15 // by which the font of an SVG reader may be wider
)

// widthOf returns the width of the legend beside a chart.
func widthOf(charts [][]key, style text.Style) vg.Length {
	widest := vg.Length(0)
	for _, keys := range charts {
		for _, k := range keys {
			widest = max(widest, style.Width(k.name))
		}
	}
	return widest*slack + patch + 3*gap
}

// drawKeys draws entries below each other, from the upper right corner of a chart.
func drawKeys(c draw.Canvas, corner vg.Point, keys []key, style text.Style) {
	style.XAlign, style.YAlign = text.XLeft, text.YCenter
	left, y := corner.X+2*gap, corner.Y-patch/2
	for _, k := range keys {
		low, high := vg.Point{X: left, Y: y - patch/2}, vg.Point{X: left + patch, Y: y + patch/2}
		switch {
		case k.limit:
			c.StrokeLine2(dashed, low.X-gap/2, y, high.X+gap/2, y)
		case k.line:
			c.StrokeLine2(draw.LineStyle{Color: k.color, Width: vg.Points(1.2)}, low.X, y, high.X, y)
			if k.ends {
				c.DrawGlyph(failed, vg.Point{X: high.X, Y: y})
			}
		default:
			c.FillPolygon(k.color, []vg.Point{low, {X: high.X, Y: low.Y}, high, {X: low.X, Y: high.Y}})
		}
		c.FillText(style, vg.Point{X: left + patch + gap, Y: y}, k.name)
		y -= patch + gap
	}
}
