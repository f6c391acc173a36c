package report

import (
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Timeline is a chart of bytes over time, stacked by area, and below it a map of their addresses.
type Timeline struct {
	Title string
	Start float64     // of the first column, in seconds or rows
	End   float64     // of the last column, beyond Start
	Rows  bool        // the axis counts rows of a trace rather than seconds
	Areas []Area      // from the bottom up
	Held  []int64     // bytes by column, drawn as a line; nil for none
	Limit int64       // bytes that there are, drawn as a line if it is near; 0 for none
	Marks []Mark      // moments that are drawn as lines
	Map   *AddressMap // nil for none
}

// Area is bytes by column. Columns are equal intervals of the axis.
type Area struct {
	Name  string
	Bytes []int64
	Color int  // number of its colour, as of [AreaColor]
	Rest  bool // it stands for everything without a name of its own, and is grey
}

// Mark is a moment with a name.
type Mark struct {
	At    float64 // on the axis of the timeline
	Name  string
	Alarm bool // it is a failure, and red
	Above bool // the name stands above those of other marks
}

// AddressMap shows who holds which addresses over time.
type AddressMap struct {
	Bytes int64 // height of the map
	Rows  int
	// Held returns the part of a cell that is held, 0 to 255; row 0 is the lowest.
	Held func(column, row int) uint8
	// Part returns the part of a cell that belongs to an area, 0 to 255.
	Part func(column, row, area int) uint8
}

// WriteTimelinesPNG draws timelines below each other in a PNG image.
func WriteTimelinesPNG(w io.Writer, all []Timeline) error {
	all = fitTimelines(all)
	c := vgimg.NewWith(vgimg.UseWH(chartWidth, heightOf(all)), vgimg.UseDPI(chartDPI))
	drawTimelines(draw.New(c), all)
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// WriteTimelinesSVG draws timelines below each other in an SVG image. Address maps are embedded as bitmaps.
func WriteTimelinesSVG(w io.Writer, all []Timeline) error {
	all = fitTimelines(all)
	c := vgsvg.New(chartWidth, heightOf(all))
	drawTimelines(draw.New(c), all)
	var titles []string
	for i := range all {
		titles = append(titles, all[i].Title)
	}
	return writeTitled(w, c, titles)
}

// fitTimelines leaves out timelines for which there is no room, and returns a placeholder if there are none.
func fitTimelines(all []Timeline) []Timeline {
	if len(all) == 0 {
		return []Timeline{{Title: "nothing to draw", End: 1}}
	}
	return all[:min(len(all), MaxCharts/2)]
}

// heightOf returns the height of an image.
func heightOf(all []Timeline) vg.Length {
	charts := 0
	for i := range all {
		charts += all[i].charts()
	}
	return chartHeight * vg.Length(charts)
}

func (t *Timeline) charts() int {
	if t.Map == nil {
		return 1
	}
	return 2
}

func drawTimelines(c draw.Canvas, all []Timeline) {
	top := c.Max.Y
	for i := range all {
		height := chartHeight * vg.Length(all[i].charts())
		all[i].draw(draw.Crop(c, 0, 0, top-height-c.Min.Y, top-c.Max.Y))
		top -= height
	}
}

// draw draws the charts below each other, and the legend beside them.
func (t *Timeline) draw(c draw.Canvas) {
	unit, name := 1.0, "row"
	if !t.Rows {
		unit, name = timeUnit(t.End)
	}
	x := axis{low: t.Start / unit, high: t.End / unit}
	plots := [][]*plot.Plot{{t.areas(x, name)}}
	keys := [][]key{t.keys()}
	if t.Map != nil {
		plots = append(plots, []*plot.Plot{t.addresses(x, name)})
		keys = append(keys, t.mapKeys())
	}
	style := keyStyle(plots[0][0])
	pad := vg.Points(4)
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadLeft: pad, PadTop: pad, PadY: 2 * pad, PadRight: widthOf(keys, style)}
	canvases := plot.Align(plots, tiles, c)
	for row := range plots {
		plots[row][0].Draw(canvases[row][0])
		at := plots[row][0].DataCanvas(canvases[row][0]).Max
		drawKeys(c, at, keys[row], style)
	}
}

// timeUnit returns a suitable unit for times of up to that many seconds: its length in seconds, and its name.
func timeUnit(seconds float64) (unit float64, name string) {
	switch {
	case seconds >= 0.5:
		return 1, "seconds"
	case seconds >= 0.5e-3:
		return 1e-3, "milliseconds"
	case seconds >= 0.5e-6:
		return 1e-6, "microseconds"
	}
	return 1e-9, "nanoseconds"
}
