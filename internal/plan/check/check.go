// Package check checks plans. It shares no code with the planners, and verifies all that a plan says about itself.
package check

import (
	"fmt"
	"io"

	"gm/formats/plan"
	"gm/formats/trace"
)

// Report holds the verified properties of a plan.
type Report struct {
	Tensors int
	Arenas  int
	Peak    int64 // bytes: the sum of the ends of all arenas
	Load    int64 // bytes: the greatest load of each arena, added up: a lower bound for any layout

	Repeated int // tensors that are allocated again in each period; 0 for a plan without a period
}

// Check reads a plan, and the trace it was made from unless that is nil. Its error names the first fault:
//
//   - two tensors of one arena overlap while both live;
//   - two repeated tensors overlap in another repetition, or one lives longer than a period;
//   - an offset is not aligned, or a tensor has no size or no life;
//   - the peak is not the sum of the ends of the arenas, with sizes rounded up to the alignment;
//   - the lower bound is above the peak, or the plan claims to be optimal and its peak is above the bound;
//   - the plan was made from another trace;
//   - a tensor differs from the trace, is not in it, or is missing.
//
// A lower bound above the load is not verified: a search may have proven it.
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

// CheckStep is [Check] for the plan of a step. It compares the plan with the tensors and the number of rows of the step, and with the
// digest of the graph's file. Arenas, offsets and pools of the given tensors are ignored.
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

// against compares a plan with its trace or step.
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

// end returns the end of a tensor in its arena, in bytes.
func (c *checked) end(t *plan.Tensor) int64 {
	return t.Offset + c.rounded(t)
}

// rounded returns a tensor's size rounded up to the alignment.
func (c *checked) rounded(t *plan.Tensor) int64 {
	return t.Size + (c.meta.Alignment-t.Size%c.meta.Alignment)%c.meta.Alignment
}

// origin checks that the plan was made from a file with the given digest and number of rows.
func (c *checked) origin(a *allocs, digest string) error {
	switch {
	case c.meta.Digest != digest:
		return fmt.Errorf("made from another %s: its digest is %.12s, that of the %s %.12s", a.of, c.meta.Digest, a.of, digest)
	case c.meta.Rows != a.rows:
		return fmt.Errorf("made from a %s of %d rows, the %s has %d", a.of, c.meta.Rows, a.of, a.rows)
	}
	return nil
}
