package overview

import (
	"fmt"
	"math/bits"
)

// View is the stretch of a trace that a picture of a GPU shows, with both ends. Positions are times in nanoseconds or numbers of rows.
type View struct {
	Rows       bool // positions are numbers of rows
	Start, End int64
}

// Whole returns the view of a whole trace.
func (o *Overview) Whole(rows bool) View {
	if rows {
		return View{true, 0, max(o.Rows-1, 0)}
	}
	return View{false, o.StartNS, o.EndNS}
}

// At returns the position of a row.
func (v View) At(row, timeNS int64) int64 {
	if v.Rows {
		return row
	}
	return timeNS
}

// column returns the number of the column of a row: -1 for a row before the view, [Columns] for one behind it.
func (v View) column(row, timeNS int64) int {
	at := v.At(row, timeNS)
	switch {
	case at < v.Start:
		return -1
	case at > v.End:
		return Columns
	}
	high, low := bits.Mul64(uint64(at-v.Start), Columns)
	column, _ := bits.Div64(high, low, uint64(v.End-v.Start)+1)
	return int(column)
}

// Iteration returns the rows of an iteration, by its number from 0, on each device that has it. No such device is an error.
func (o *Overview) Iteration(number int) (map[int32]Span, error) {
	spans := map[int32]Span{}
	most := 0
	for _, d := range o.Devices {
		all := d.Iterations
		most = max(most, len(all))
		if number >= 0 && number < len(all) {
			spans[d.Ordinal] = all[number]
		}
	}
	if most == 0 {
		return nil, fmt.Errorf("it has no iterations: none are found, and no marks end any")
	}
	if len(spans) == 0 {
		return nil, fmt.Errorf("no iteration %d, it has those from 0 to %d", number, most-1)
	}
	return spans, nil
}
