// Package layout makes plans of traces and of steps. It collects the tensors, assigns those that may share memory to the same address
// range, an arena, and runs a solver of package dsa on each arena.
//
//   - tensors.go: the tensors of a trace, and its iterations
//   - step.go: the tensors of a step of a graph
//   - arenas.go: which tensors share an arena
//   - cycle.go: iterations that repeat
//   - plan.go: the problems of the arenas, their layouts, and the plan
//   - recorded.go: what a plan stores about the traced allocator
package layout

import (
	"fmt"
	"io"
	"slices"

	"gm/formats/column"
	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/iterations"
	"gm/internal/trace/tags"
)

// Tensors holds the allocations that a framework made in a trace, as columns, in the order of allocation.
type Tensors struct {
	ID      []int64
	Size    []int64 // bytes as requested
	Alloc   []int64 // row of the trace
	Free    []int64 // row from which the memory is reusable; the number of rows if it is never freed
	AllocNS []int64 // nanoseconds since the Unix epoch
	FreeNS  []int64 // the time of the last row if it is never freed
	Device  []int32
	Stream  []int64
	Pool    []int32 // code in Pools
	Tag     []int32 // code in Tags

	Pools  *column.Strings // names of private pools
	Tags   *column.Strings // names of the tags that the trace has
	Rows   int64           // of the trace
	Meta   trace.Meta
	Digest string // SHA-256 of the trace file, in hex

	recorded *recorded
	rowsOf   string  // as in plan.Meta
	others   []int64 // rows that are not about the framework's allocator
	marks    iterations.Marks
}

// Len returns the number of tensors.
func (t *Tensors) Len() int { return len(t.ID) }

// Collect reads the tensors of a trace. The reader must be at the first row.
func Collect(r *trace.Reader) (*Tensors, error) {
	conf, _ := allocconf.Recorded(r.Meta().AllocConf)
	if r.Rows() > plan.MaxTraceRows {
		return nil, r.Wrap(fmt.Errorf("%d rows, more than the %d that a plan can be made of", r.Rows(), plan.MaxTraceRows))
	}
	t := &Tensors{Pools: column.NewStrings(), Tags: column.NewStrings(), Meta: r.Meta(), recorded: newRecorded(conf)}
	lastNS := int64(0)
	for {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for i, op := range b.Op {
			lastNS = b.TimeNS[i]
			if b.Level[i] != trace.LevelFramework || op == trace.OpMark || op == trace.OpSample {
				t.others = append(t.others, t.Rows+int64(i))
				if op == trace.OpMark {
					t.marks.Add(r.Strings().Text(b.Tag[i]), t.Rows+int64(i))
				}
				continue
			}
			e := b.Row(i)
			t.recorded.add(&e, t.Rows+int64(i), r.Strings().Text(e.Tag))
			switch op {
			case trace.OpAlloc:
				if t.Len() == plan.MaxRows {
					return nil, r.Wrap(fmt.Errorf("row %d: more than %d allocations, which is what a plan holds", t.Rows+int64(i), plan.MaxRows))
				}
				t.born(b, i, t.Pools.Code(r.Strings().Text(b.Pool[i])), t.Rows+int64(i))
				t.Tag = append(t.Tag, t.Tags.Code(tags.Named(r.Strings().Text(e.Tag), r.Strings().Text(e.Derived))))
			case trace.OpFree, trace.OpFreeCompleted:
				if err := t.dies(b.ID[i], t.Rows+int64(i), b.TimeNS[i]); err != nil {
					return nil, r.Wrap(err)
				}
			}
		}
		t.Rows += int64(b.Len())
	}
	for i, free := range t.Free {
		if free == alive {
			t.Free[i], t.FreeNS[i] = t.Rows, lastNS
		}
	}
	var err error
	if t.Digest, err = r.Digest(); err != nil {
		return nil, fmt.Errorf("digest: %w", err)
	}
	return t, nil
}

// alive marks a tensor that has not been freed yet.
const alive = -1

func (t *Tensors) born(b *trace.Batch, i int, pool int32, row int64) {
	t.ID, t.Size, t.Alloc, t.Free = append(t.ID, b.ID[i]), append(t.Size, b.Size[i]), append(t.Alloc, row), append(t.Free, alive)
	t.AllocNS, t.FreeNS = append(t.AllocNS, b.TimeNS[i]), append(t.FreeNS, 0)
	t.Device, t.Stream, t.Pool = append(t.Device, b.Device[i]), append(t.Stream, b.Stream[i]), append(t.Pool, pool)
}

// dies records a free. Ids ascend from alloc to alloc; they have no gaps if all allocs are the framework's.
func (t *Tensors) dies(id, row, ns int64) error {
	i := 0
	if t.Len() > 0 {
		i = int(id - t.ID[0])
	}
	if i < 0 || i >= t.Len() || t.ID[i] != id {
		var ok bool
		if i, ok = slices.BinarySearch(t.ID, id); !ok {
			return fmt.Errorf("row %d: free of id %d, which was never allocated", row, id)
		}
	}
	if t.Free[i] != alive {
		return fmt.Errorf("row %d: free of id %d, which was freed before", row, id)
	}
	t.Free[i], t.FreeNS[i] = row, ns
	return nil
}

// position returns the number of rows of the framework's allocator before a row. Other rows take no time: for a solver, a tensor lives
// as long with the driver's rows as without them.
func (t *Tensors) position(row int64) int64 {
	before, _ := slices.BinarySearch(t.others, row)
	return row - int64(before)
}

// Window is the rows [Lo, Hi) of a trace.
type Window struct {
	Lo, Hi int64
}

// Iterations returns the training iterations, those that package iterations finds or that marks end, see [iterations.Sections]. One that was
// found is from the row of its first allocation to the row of the first allocation of the next. It returns nil when there is none.
func (t *Tensors) Iterations() []Window {
	streams := make([]int64, t.Len())
	for i := range streams {
		streams[i] = t.Stream[i] + int64(t.Device[i])<<48 // handles are addresses of user space, which do not use these bits
	}
	var found []iterations.Section
	for _, span := range iterations.Find(t.Size, streams, t.liveBefore()) {
		s := iterations.Section{First: t.Alloc[span.Lo], End: t.Rows}
		if span.Hi < t.Len() {
			s.End = t.Alloc[span.Hi]
		}
		found = append(found, s)
	}
	all, _ := iterations.Sections(found, t.marks.Ends())
	var windows []Window
	for _, s := range all {
		windows = append(windows, Window{s.First, s.End})
	}
	return windows
}

// liveBefore returns the bytes that live just before each allocation.
func (t *Tensors) liveBefore() []int64 {
	frees := make([]int32, t.Len())
	for i := range frees {
		frees[i] = int32(i)
	}
	slices.SortFunc(frees, func(a, b int32) int { return int(t.Free[a] - t.Free[b]) })
	live := make([]int64, t.Len())
	now := int64(0)
	for i, row := range t.Alloc {
		for ; t.Free[frees[0]] < row; frees = frees[1:] {
			now -= t.Size[frees[0]]
		}
		live[i] = now
		now += t.Size[i]
	}
	return live
}
