package importer

import (
	"cmp"
	"fmt"
	"slices"

	"gm/formats/trace"
)

const (
	mmID = iota
	mmLower
	mmUpper
	mmEnd
	mmSize
	mmAlignment
	mmGaps
	mmOffset
	mmSameAs
	mmNextTo
	mmArena
)

var mmColumns = []column{
	mmID:        {names: []string{"id", "buffer", "buffer_id"}, required: true},
	mmLower:     {names: []string{"lower", "begin", "start"}, required: true},
	mmUpper:     {names: []string{"upper"}},
	mmEnd:       {names: []string{"end"}}, // inclusive
	mmSize:      {names: []string{"size"}, required: true},
	mmAlignment: {names: []string{"alignment"}},
	mmGaps:      {names: []string{"gaps"}},
	mmOffset:    {names: []string{"offset"}},
	mmSameAs:    {names: []string{"same_as"}},
	mmNextTo:    {names: []string{"next_to"}},
	mmArena:     {names: []string{"arena"}},
}

// maxBuffers bounds the buffers of an instance, which are all kept in memory, at about 60 bytes each.
const maxBuffers = 8 << 20

// buffer is a row of an instance.
type buffer struct {
	lower, upper int64 // it is live in [lower, upper)
	size         int64
	offset       uint64
	tag          int32
	id           int64 // in the trace
}

// instance is the state of the import.
type instance struct {
	*table
	buffers   []buffer
	alignment int64 // bytes: the greatest of all buffers
	unlike    bool  // the alignments differ
}

func (t *text) minimalloc() error {
	tab, err := t.table(mmColumns, nil)
	if err != nil {
		return err
	}
	if (tab.places[mmUpper] < 0) == (tab.places[mmEnd] < 0) {
		return t.fail("expected one of the columns upper and end")
	}
	in := &instance{table: tab}
	for err = tab.next(); err == nil; err = tab.next() {
		if err := in.row(); err != nil {
			return err
		}
	}
	if done(err) != nil {
		return err
	}
	t.out.out.Meta().Alignment = max(in.alignment, 1)
	if in.unlike {
		t.out.warn(fmt.Sprintf("alignments differ: the greatest, %d, is taken for all buffers", in.alignment))
	}
	return in.write()
}

func (in *instance) row() error {
	var b buffer
	var err error
	if b.lower, err = in.integer(mmLower, 0, trace.MaxTime); err != nil {
		return err
	}
	if b.upper, err = in.upper(b.lower); err != nil {
		return err
	}
	if b.size, err = in.integer(mmSize, 0, trace.MaxSize); err != nil {
		return err
	}
	if b.offset, err = in.address(mmOffset); err != nil {
		return err
	}
	if err := in.align(); err != nil {
		return err
	}
	in.count()
	if b.size == 0 || b.upper == b.lower {
		in.out.odd.empty++
		return nil
	}
	if len(in.buffers) >= maxBuffers {
		return in.fail("more than %d buffers", maxBuffers)
	}
	b.tag = in.out.text(in.field(mmID))
	in.buffers = append(in.buffers, b)
	return nil
}

// count counts what a trace cannot say of a buffer.
func (in *instance) count() {
	if in.field(mmGaps) != "" {
		in.out.odd.gaps++
	}
	if in.field(mmSameAs) != "" || in.field(mmNextTo) != "" {
		in.out.odd.tied++
	}
	if in.field(mmArena) != "" {
		in.out.odd.arenas++
	}
}

// upper returns the end of a buffer's lifetime.
func (in *instance) upper(lower int64) (int64, error) {
	if in.places[mmUpper] >= 0 {
		upper, err := in.integer(mmUpper, 0, trace.MaxTime)
		if err == nil && upper < lower {
			err = in.fail("upper %d is before lower %d", upper, lower)
		}
		return upper, err
	}
	end, err := in.integer(mmEnd, -1, trace.MaxTime-1)
	if err == nil && end+1 < lower {
		err = in.fail("end %d is before lower %d", end, lower)
	}
	return end + 1, err
}

// maxAlignment bounds alignments, in bytes.
const maxAlignment = 1 << 40

func (in *instance) align() error {
	n, err := in.integer(mmAlignment, 0, maxAlignment)
	if err != nil {
		return err
	}
	n = max(n, 1)
	in.unlike = in.unlike || in.alignment != 0 && n != in.alignment
	in.alignment = max(in.alignment, n)
	return nil
}

// write writes the rows in order of time: frees before allocations, otherwise in the order of the instance.
func (in *instance) write() error {
	ends := make([]int32, len(in.buffers))
	starts := make([]int32, len(in.buffers))
	for i := range in.buffers {
		ends[i], starts[i] = int32(i), int32(i)
	}
	slices.SortStableFunc(ends, func(a, b int32) int { return cmp.Compare(in.buffers[a].upper, in.buffers[b].upper) })
	slices.SortStableFunc(starts, func(a, b int32) int { return cmp.Compare(in.buffers[a].lower, in.buffers[b].lower) })
	for len(ends) > 0 {
		b := &in.buffers[ends[0]]
		if len(starts) > 0 && in.buffers[starts[0]].lower < b.upper {
			b = &in.buffers[starts[0]]
			starts = starts[1:]
			id, err := in.out.alloc(b.row(b.lower))
			if err != nil {
				return err
			}
			b.id = id
			continue
		}
		ends = ends[1:]
		e := b.row(b.upper)
		e.Op, e.ID = trace.OpFree, b.id
		if err := in.out.write(e); err != nil {
			return err
		}
	}
	return nil
}

func (b *buffer) row(at int64) trace.Event {
	return trace.Event{TimeNS: at, Size: b.size, Addr: b.offset, Tag: b.tag}
}
