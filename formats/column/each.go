package column

import (
	"errors"
	"io"
)

// readable is a batch whose rows can be had one at a time.
type readable[B, R any] interface {
	*B
	Len() int
	Row(i int) R
}

// Each calls visit with every row that is still to be read. The row is valid until visit returns, whose error ends the reading and is
// returned as it is.
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
