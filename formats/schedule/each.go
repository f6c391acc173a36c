package schedule

import (
	"errors"
	"io"
)

// Each calls visit with every action of a schedule that is still to be read. The action is valid until visit returns; an error of visit
// ends the reading.
func Each(r *Reader, visit func(a *Action) error) error {
	for {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range batch.Len() {
			a := batch.Row(i)
			if err := visit(&a); err != nil {
				return err
			}
		}
	}
}
