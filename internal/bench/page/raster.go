package page

import (
	"math"
	"slices"

	"gm/internal/cuda"
)

// A map has this many cells from left to right, over time, and from bottom to top, over addresses.
const (
	columns = 1536
	lines   = 320
)

// raster is a map of addresses over time: for each cell the share that is in use, from 0 to 255, column by column.
type raster struct {
	Ranges   []addresses
	Total    int64 // bytes of all ranges
	Span     int64 // nanoseconds
	Live     []byte
	Reserved []byte
}

// addresses is a range of addresses and its position on the map, which leaves out what is between the ranges.
type addresses struct {
	Addr   cuda.Ptr
	Size   int64
	Offset int64
}

func (a *addresses) end() cuda.Ptr { return a.Addr + cuda.Ptr(a.Size) }

func newRaster(ranges []addresses, span int64) *raster {
	last := ranges[len(ranges)-1]
	return &raster{Ranges: ranges, Total: last.Offset + last.Size, Span: span}
}

// draw adds up the share of each cell that the rectangles cover. Rectangles only change a row of sums where they begin and end; the cells
// are the running sums.
func (r *raster) draw(all []rectangle) []byte {
	sums := make([]float32, lines*(columns+2))
	for _, rect := range all {
		offset, ok := r.offset(rect.addr)
		if !ok {
			continue
		}
		low := float64(offset) / float64(r.Total) * lines
		high := math.Min(float64(offset+rect.size)/float64(r.Total)*lines, lines)
		for line := int(low); line < lines && float64(line) < high; line++ {
			share := math.Min(high, float64(line+1)) - math.Max(low, float64(line))
			row := sums[line*(columns+2) : (line+1)*(columns+2)]
			step(row, r.column(rect.from), float32(share))
			step(row, r.column(rect.to), -float32(share))
		}
	}
	cells := make([]byte, columns*lines)
	for line := range lines {
		sum := float32(0)
		for column := range columns {
			sum += sums[line*(columns+2)+column]
			cells[column*lines+line] = shade(sum)
		}
	}
	return cells
}

// step increases a sum from a moment on: in part in the column of that moment, in full in the next.
func step(row []float32, at float64, share float32) {
	column := int(at)
	part := float32(at - float64(column))
	row[column] += share * (1 - part)
	row[column+1] += share * part
}

func (r *raster) column(ns int64) float64 {
	return min(max(float64(ns)/float64(r.Span)*columns, 0), columns)
}

// shade returns a share as a byte: 0 for nothing, at least 1 for anything that can be seen.
func shade(share float32) byte {
	if share < 1e-4 {
		return 0
	}
	return byte(min(max(share*255+0.5, 1), 255))
}

// offset returns the position of an address on the map.
func (r *raster) offset(addr cuda.Ptr) (int64, bool) {
	i, found := slices.BinarySearchFunc(r.Ranges, addr, func(a addresses, p cuda.Ptr) int {
		switch {
		case p < a.Addr:
			return 1
		case p >= a.end():
			return -1
		}
		return 0
	})
	if !found {
		return 0, false
	}
	return r.Ranges[i].Offset + int64(addr-r.Ranges[i].Addr), true
}
