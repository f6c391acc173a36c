package ranks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gm/formats/column"
)

// Each calls read with the trace of every member, n of them at once, and done after each. A member whose trace cannot be read is left out:
// it is no longer in Members. An error of the context ends the reading, as does the loss of all members.
func (j *Job) Each(ctx context.Context, n int, done func(), read func(m *Member, source *column.Source) error) error {
	failed := make([]error, len(j.Members))
	next := make(chan *Member)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for m := range next {
				failed[m.Index] = m.read(ctx, read)
				done()
			}
		})
	}
	for _, m := range j.Members {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	all.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	j.leave(failed)
	if len(j.Members) == 0 {
		return fmt.Errorf("%s: no trace could be read%s", j.Folder, j.first())
	}
	return nil
}

func (m *Member) read(ctx context.Context, read func(m *Member, source *column.Source) error) (err error) {
	source, err := column.OpenSource(m.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	source.Until(ctx)
	return read(m, source)
}

// Leave leaves out a member whose trace could not be read, outside of Each.
func (j *Job) Leave(m *Member, err error) {
	failed := make([]error, len(j.Members))
	failed[m.Index] = err
	j.leave(failed)
}

// leave removes the members that failed.
func (j *Job) leave(failed []error) {
	kept := slices.Clone(j.Members)
	j.Members = nil
	for i, m := range kept {
		if failed[i] == nil {
			j.Members = append(j.Members, m)
		} else {
			j.Left = append(j.Left, Left{m.File, reason(failed[i], m.path)})
		}
	}
	j.finish()
}
