package trace

import (
	"errors"
	"io"
)

// Each calls visit with every row of a trace that is still to be read, and its number from 0. The event is valid until visit
// returns, whose error ends the reading and is returned as it is.
func Each(r *Reader, visit func(row int64, e *Event) error) error {
	row := int64(0)
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range batch.Len() {
			e := batch.Row(i)
			if err := visit(row, &e); err != nil {
				return err
			}
			row++
		}
	}
}
