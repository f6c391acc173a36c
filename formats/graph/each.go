package graph

import (
	"errors"
	"io"
)

// Each calls visit with every row of a graph that is still to be read. The row is valid until visit returns; an error of visit ends the
// reading.
func Each(r *Reader, visit func(row *Row) error) error {
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range batch.Len() {
			row := batch.Row(i)
			if err := visit(&row); err != nil {
				return err
			}
		}
	}
}
