package replay

import (
	"errors"
	"fmt"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
)

// origin is the file that a program was read from.
type origin struct {
	name string
	kept *column.Source // standard input or a pipe, which cannot be opened again; nil for others
}

// open opens the file again.
func (o origin) open() (source *column.Source, done func() error, err error) {
	if o.kept != nil {
		return o.kept, func() error { return nil }, nil
	}
	if source, err = column.OpenSource(o.name); err != nil {
		return nil, nil, err
	}
	return source, source.Close, nil
}

var errLastStack = errors.New("no row is left")

// Reread calls read with the trace that the program was opened from. It returns false without a call for a plan, and for a program that
// Open did not read.
func (p *Program) Reread(read func(*column.Source) error) (is bool, err error) {
	if p.origin == nil {
		return false, nil
	}
	source, done, err := p.origin.open()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if kind, err := column.Kind(source, source.Size()); err != nil || kind == "plan" {
		return false, err
	}
	return true, read(source)
}

// SameFile reports whether two programs were opened from one file.
func (p *Program) SameFile(q *Program) bool { return p.origin != nil && p.origin == q.origin }

// Stacks reads the trace that the program was opened from once more and returns the folded stacks of the given rows, "" where none was
// recorded. It returns nil for a plan, which has no stacks, and for a program that Open did not read.
func (p *Program) Stacks(rows []int64) (stacks map[int64]string, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	_, err = p.Reread(func(source *column.Source) (err error) {
		stacks, err = trace.ReadSource(source, func(r *trace.Reader) (map[int64]string, error) { return readStacks(r, rows) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read stacks: %w", err)
	}
	return stacks, nil
}

func readStacks(r *trace.Reader, rows []int64) (map[int64]string, error) {
	stacks := map[int64]string{}
	sorted := slices.Clone(rows)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if row == sorted[0] {
			stacks[row] = r.Strings().Text(e.Stack)
			sorted = sorted[1:]
		}
		if len(sorted) == 0 {
			return errLastStack
		}
		return nil
	})
	if err != nil && !errors.Is(err, errLastStack) {
		return nil, err
	}
	return stacks, nil
}
