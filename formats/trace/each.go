package trace

import "gm/formats/column"

// Each calls visit with every row of a trace that is still to be read, and its number from 0. The event is valid until visit
// returns. An error of visit ends the reading and is returned unchanged.
func Each(r *Reader, visit func(row int64, e *Event) error) error {
	row := int64(-1)
	return column.Each(r, func(e *Event) error {
		row++
		return visit(row, e)
	})
}
