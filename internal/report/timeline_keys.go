package report

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// key is an entry of the legend.
type key struct {
	name  string
	color color.Color
	line  bool
}

// keys returns the entries for the areas, the topmost first.
func (t *Timeline) keys() []key {
	var all []key
	if t.Held != nil {
		all = append(all, key{"reserved", heldColor, true})
	}
	for i := len(t.Areas) - 1; i >= 0; i-- {
		for _, bytes := range t.Areas[i].Bytes {
			if bytes > 0 {
				all = append(all, key{title(t.Areas[i].Name), t.color(i), false})
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
	return []key{{"reserved and free", freeColor, false}}
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
		if k.line {
			c.StrokeLine2(draw.LineStyle{Color: k.color, Width: vg.Points(1)}, low.X, y, high.X, y)
		} else {
			c.FillPolygon(k.color, []vg.Point{low, {X: high.X, Y: low.Y}, high, {X: low.X, Y: high.Y}})
		}
		c.FillText(style, vg.Point{X: left + patch + gap, Y: y}, k.name)
		y -= patch + gap
	}
}
