package check

import (
	"errors"
	"fmt"

	"gm/formats/plan"
	"gm/formats/trace"
)

// Alike checks that the plan of a whole trace fits another one, such as that of another rank: allocation by allocation the sizes, devices and
// pools are the plan's, and no two tensors of one arena overlap while both live in that trace. Its error names the first fault.
func Alike(p *plan.Reader, t *trace.Reader) (Report, error) {
	c, err := load(p)
	if err != nil {
		return Report{}, err
	}
	if c.meta.First != 0 || c.meta.End != c.meta.Rows || c.meta.Period != 0 {
		return Report{}, p.Wrap(errors.New("of a part of a trace, which may fit that trace alone"))
	}
	a, err := readAllocs(t)
	if err != nil {
		return Report{}, err
	}
	if err := c.move(a); err != nil {
		return Report{}, p.Wrap(err)
	}
	report, err := c.places()
	if err != nil {
		return Report{}, p.Wrap(err)
	}
	return report, nil
}

// move gives the tensors of the plan the lives that they have in another trace.
func (c *checked) move(a *allocs) error {
	if len(c.tensors) != len(a.tensors) {
		return fmt.Errorf("of %d tensors, the trace has %d", len(c.tensors), len(a.tensors))
	}
	for i := range c.tensors {
		t, other := &c.tensors[i], &a.tensors[i]
		if t.Size != other.Size || t.Device != other.Device || c.text(t.Pool) != a.pools[i] {
			return fmt.Errorf("row %d: a tensor of %d bytes, device %d, pool %q: in the trace %d bytes, device %d, pool %q", i,
				t.Size, t.Device, c.text(t.Pool), other.Size, other.Device, a.pools[i])
		}
		t.Alloc, t.Free, t.AllocNS, t.FreeNS = other.Alloc, other.Free, other.AllocNS, other.FreeNS
	}
	c.meta.Rows, c.meta.End = a.rows, a.rows
	return nil
}
