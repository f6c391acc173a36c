package check

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"gm/formats/plan"
	"gm/formats/trace"
)

// allocs holds the tensors of a trace or a step, as a plan should list them. Pools are stored by name, since the codes of
// two files differ.
type allocs struct {
	of      string // trace or step
	tensors []plan.Tensor
	pools   []string
	rows    int64
	others  []int64 // rows that are not about the framework's allocator
}

// clock returns the number of rows before a row, not counting others.
func (a *allocs) clock(row int64) int64 {
	before, _ := slices.BinarySearch(a.others, row)
	return row - int64(before)
}

// readAllocs reads the allocations of the framework from a trace.
func readAllocs(r *trace.Reader) (*allocs, error) {
	a := &allocs{of: "trace"}
	index := map[int64]int{} // of the live ones, by id
	lastNS := int64(0)
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range b.Len() {
			e := b.Row(i)
			lastNS = e.TimeNS
			if e.Level != trace.LevelFramework || e.Op == trace.OpMark || e.Op == trace.OpSample {
				a.others = append(a.others, a.rows)
			} else {
				a.note(e, index, r.Strings().Text(e.Pool))
			}
			a.rows++
		}
	}
	for _, i := range index {
		a.tensors[i].Free, a.tensors[i].FreeNS = a.rows, lastNS
	}
	return a, nil
}

func (a *allocs) note(e trace.Event, index map[int64]int, pool string) {
	switch e.Op {
	case trace.OpAlloc:
		index[e.ID] = len(a.tensors)
		a.pools = append(a.pools, pool)
		a.tensors = append(a.tensors, plan.Tensor{
			ID: e.ID, Size: e.Size, Alloc: a.rows, AllocNS: e.TimeNS, Device: e.Device, Stream: e.Stream,
		})
	case trace.OpFree, trace.OpFreeCompleted:
		if i, ok := index[e.ID]; ok {
			a.tensors[i].Free, a.tensors[i].FreeNS = a.rows, e.TimeNS
			delete(index, e.ID)
		}
	}
}

// cover checks that the plan lists each tensor that lives in its window once, unchanged, and no
// other tensor. Both are in the order of allocations.
func (c *checked) cover(a *allocs) error {
	lo, hi := c.meta.First, c.meta.End
	row := 0
	for i := range a.tensors {
		want := &a.tensors[i]
		if row < len(c.tensors) && c.tensors[row].Alloc < want.Alloc {
			break
		}
		if row == len(c.tensors) || c.tensors[row].Alloc > want.Alloc {
			if want.Alloc < hi && want.Free > lo {
				return fmt.Errorf("row %d: tensor %d, which lives in the rows %d to %d of the %s, is missing", row, want.ID, want.Alloc, want.Free, a.of)
			}
			continue
		}
		if differs := c.differs(&c.tensors[row], want, a.pools[i], a.of); differs != "" {
			return fmt.Errorf("row %d: tensor %d %s", row, c.tensors[row].ID, differs)
		}
		row++
	}
	if row < len(c.tensors) {
		t := &c.tensors[row]
		return fmt.Errorf("row %d: tensor %d is allocated at row %d of the %s, which allocates nothing there", row, t.ID, t.Alloc, a.of)
	}
	return nil
}

// differs names the first difference from the trace or step, or returns "".
func (c *checked) differs(t, want *plan.Tensor, pool, of string) string {
	for _, field := range [...]struct {
		name        string
		value, want int64
	}{
		{"id", t.ID, want.ID}, {"size", t.Size, want.Size}, {"free", t.Free, want.Free},
		{"alloc_ns", t.AllocNS, want.AllocNS}, {"free_ns", t.FreeNS, want.FreeNS},
		{"device", int64(t.Device), int64(want.Device)}, {"stream", t.Stream, want.Stream},
	} {
		if field.value != field.want {
			return fmt.Sprintf("has %s %d, in the %s %d", field.name, field.value, of, field.want)
		}
	}
	if name := c.text(t.Pool); name != pool {
		return fmt.Sprintf("has pool %q, in the %s %q", name, of, pool)
	}
	return ""
}
