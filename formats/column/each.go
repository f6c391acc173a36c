package column

import (
	"errors"
	"io"
)

// readable is a batch that returns its rows one at a time.
type readable[B, R any] interface {
	*B
	Len() int
	Row(i int) R
}

// Each calls visit with every row that is still to be read. The row is valid until visit returns. An error of visit ends the reading
// and is returned unchanged.
func Each[B, M, R any, P readable[B, R]](r *Reader[B, M], visit func(*R) error) error {
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range P(batch).Len() {
			row := P(batch).Row(i)
			if err := visit(&row); err != nil {
				return err
			}
		}
	}
}
