package plan

import (
	"errors"
	"io"
)

// Each calls visit with every tensor of a plan that is still to be read. The tensor is valid until visit returns; an error of visit ends
// the reading.
func Each(r *Reader, visit func(t *Tensor) error) error {
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range batch.Len() {
			t := batch.Row(i)
			if err := visit(&t); err != nil {
				return err
			}
		}
	}
}
