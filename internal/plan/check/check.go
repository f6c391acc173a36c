// Package check checks plans. It shares no code with what makes them, and takes nothing that a plan says of itself
// for granted.
package check

import (
	"fmt"
	"io"

	"gm/formats/plan"
	"gm/formats/trace"
)

// Report is what was found to be true of a plan.
type Report struct {
	Tensors int
	Arenas  int
	Peak    int64 // bytes: the ends of all arenas, added up
	Load    int64 // bytes: the most that lives at one time in each arena, added up; no layout takes less

	Repeated int // tensors that come to life again in each period; 0 when the plan has none
}

// Check reads a plan, and the trace it was made from unless that is nil, and returns an error that names the first
// thing that is wrong:
//
//   - two tensors of one arena overlap while both live;
//   - two that are repeated overlap in another repetition, or one lives longer than a period;
//   - an offset is not aligned, or a tensor has no size or no life;
//   - the peak is not the sum of what the arenas reach, sizes rounded up to the alignment;
//   - the lower bound is more than the peak, or the plan claims to be optimal and does not meet it;
//   - the plan was made from another trace;
//   - a tensor differs from the trace, is not in it, or is missing.
//
// A lower bound above the load, which a search may have proven, is taken on trust.
func Check(p *plan.Reader, t *trace.Reader) (Report, error) {
	c, err := load(p)
	if err != nil {
		return Report{}, err
	}
	report, err := c.places()
	if err != nil {
		return Report{}, p.Wrap(err)
	}
	if t == nil {
		return report, nil
	}
	if c.meta.Rows != t.Rows() {
		return Report{}, p.Wrap(fmt.Errorf("made from a trace of %d rows, the trace has %d", c.meta.Rows, t.Rows()))
	}
	allocs, err := readAllocs(t)
	if err != nil {
		return Report{}, err
	}
	digest, err := t.Digest()
	if err != nil {
		return Report{}, fmt.Errorf("digest: %w", err)
	}
	if err := c.against(allocs, digest); err != nil {
		return Report{}, p.Wrap(err)
	}
	return report, nil
}

// CheckStep is [Check] for the plan of a graph's step, by the digest of the graph's file: the plan should have these tensors, and the step so
// many rows. Arenas and offsets of the tensors are not looked at, and neither are pools: there are none.
func CheckStep(p *plan.Reader, tensors []plan.Tensor, rows int64, digest string) (Report, error) {
	c, err := load(p)
	if err != nil {
		return Report{}, err
	}
	report, err := c.places()
	if err == nil {
		err = c.against(&allocs{of: "step", tensors: tensors, pools: make([]string, len(tensors)), rows: rows}, digest)
	}
	if err != nil {
		return Report{}, p.Wrap(err)
	}
	return report, nil
}

// against checks a plan against what it was made from.
func (c *checked) against(a *allocs, digest string) error {
	if err := c.origin(a, digest); err != nil {
		return err
	}
	if err := c.cover(a); err != nil {
		return err
	}
	_, err := c.repeats(a.clock)
	return err
}

// checked is a plan in memory.
type checked struct {
	meta    plan.Meta
	tensors []plan.Tensor
	text    func(code int32) string
	arenas  map[arena]*usage
}

func load(p *plan.Reader) (*checked, error) {
	c := &checked{meta: p.Meta(), text: p.Strings().Text, arenas: map[arena]*usage{}}
	for {
		b, err := p.Next()
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range b.Len() {
			c.tensors = append(c.tensors, b.Row(i))
		}
	}
}

// end returns where a tensor ends in its arena, in bytes.
func (c *checked) end(t *plan.Tensor) int64 {
	return t.Offset + c.rounded(t)
}

// rounded returns a tensor's size rounded up to the alignment.
func (c *checked) rounded(t *plan.Tensor) int64 {
	return t.Size + (c.meta.Alignment-t.Size%c.meta.Alignment)%c.meta.Alignment
}

// origin checks that the plan was made from what has a digest and a number of rows.
func (c *checked) origin(a *allocs, digest string) error {
	switch {
	case c.meta.Digest != digest:
		return fmt.Errorf("made from another %s: its digest is %.12s, that of the %s %.12s", a.of, c.meta.Digest, a.of, digest)
	case c.meta.Rows != a.rows:
		return fmt.Errorf("made from a %s of %d rows, the %s has %d", a.of, c.meta.Rows, a.of, a.rows)
	}
	return nil
}
