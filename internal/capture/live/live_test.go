package live

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/formats/column"
	"gm/formats/trace"
)

const start = 1_000 * second

// row is an event, with its texts.
type row struct {
	op         trace.Op
	id, size   int64
	addr       uint64
	stream     int64
	stack, tag string
	after      int64 // seconds after the start
}

func (r row) event(texts *column.Strings) trace.Event {
	return trace.Event{
		TimeNS: start + r.after*second, Op: r.op, ID: r.id, Size: r.size, Addr: r.addr, Stream: r.stream,
		Stack: texts.Code(r.stack), Tag: texts.Code(r.tag),
	}
}

func TestFramework(t *testing.T) {
	for name, c := range map[string]struct {
		rows []row
		want Level
	}{
		"freed": {
			[]row{
				{op: trace.OpSegmentAlloc, size: 20, addr: 1}, {op: trace.OpAlloc, size: 10, addr: 1, stack: "a"},
				{op: trace.OpFreeRequested, addr: 1}, {op: trace.OpFreeCompleted, addr: 1}, {op: trace.OpSegmentFree, size: 20, addr: 1},
			},
			Level{
				Peak: 10, PeakReserved: 20, Allocs: 1, UntilNS: start,
				Streams: []Group{{Name: "0", Peak: 10, Allocs: 1}}, Stacks: []Group{{Name: "a", Peak: 10, Allocs: 1}},
			},
		},
		"requested only": {
			[]row{{op: trace.OpAlloc, size: 10, addr: 1}, {op: trace.OpFreeRequested, addr: 1}},
			Level{
				Live: 10, Peak: 10, Allocs: 1, UntilNS: start,
				Streams: []Group{{Name: "0", Live: 10, Peak: 10, Blocks: 1, Allocs: 1}},
				Stacks:  []Group{{Live: 10, Peak: 10, Blocks: 1, Allocs: 1}},
			},
		},
		"streams, and a stack that holds most": {
			[]row{
				{op: trace.OpSegmentMap, size: 30, addr: 1}, {op: trace.OpSegmentUnmap, size: 10, addr: 21},
				{op: trace.OpAlloc, size: 4, addr: 1, stream: 7, stack: "a"}, {op: trace.OpAlloc, size: 6, addr: 5, stack: "b"},
				{op: trace.OpAlloc, size: 3, addr: 11, stack: "a"},
			},
			Level{
				Live: 13, Peak: 13, Reserved: 20, PeakReserved: 30, Allocs: 3, UntilNS: start,
				Streams: []Group{{Name: "0", Live: 9, Peak: 9, Blocks: 2, Allocs: 2}, {Name: "7", Live: 4, Peak: 4, Blocks: 1, Allocs: 1}},
				Stacks:  []Group{{Name: "a", Live: 7, Peak: 7, Blocks: 2, Allocs: 2}, {Name: "b", Live: 6, Peak: 6, Blocks: 1, Allocs: 1}},
			},
		},
		"a free that was lost, and one of nothing": {
			[]row{{op: trace.OpAlloc, size: 4, addr: 1}, {op: trace.OpAlloc, size: 5, addr: 1}, {op: trace.OpFree, addr: 9}},
			Level{
				Live: 5, Peak: 5, Allocs: 2, UntilNS: start, Streams: []Group{{Name: "0", Live: 5, Peak: 5, Blocks: 1, Allocs: 2}},
				Stacks: []Group{{Live: 5, Peak: 5, Blocks: 1, Allocs: 2}},
			},
		},
		"refused": {
			[]row{{op: trace.OpOOM, size: 99, after: 1}},
			Level{Refused: 1, UntilNS: start + second, Streams: []Group{}, Stacks: []Group{}},
		},
		"rate": {
			[]row{
				{op: trace.OpAlloc, size: 1, addr: 1}, {op: trace.OpFree, addr: 1, after: 1}, {op: trace.OpAlloc, size: 1, addr: 1, after: 1},
				{op: trace.OpAlloc, size: 1, addr: 2, after: 1}, {op: trace.OpFree, addr: 1, after: 2}, {op: trace.OpFree, addr: 2, after: 2},
			},
			Level{
				Peak: 2, Allocs: 3, Rate: 1.5, UntilNS: start + 2*second,
				Streams: []Group{{Name: "0", Peak: 2, Allocs: 3}}, Stacks: []Group{{Peak: 2, Allocs: 3}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			texts := column.NewStrings()
			f := NewFramework(texts)
			for _, r := range c.rows {
				f.Add(r.event(texts))
			}
			c.want.Tags = []Group{}
			if diff := cmp.Diff(map[int32]*Level{0: &c.want}, f.Levels(start+3*second)); diff != "" {
				t.Errorf("wanted -, got +\n%s", diff)
			}
		})
	}
}

func TestDriver(t *testing.T) {
	for name, c := range map[string]struct {
		rows []row
		want Level
	}{
		"kinds": {
			[]row{
				{op: trace.OpAlloc, id: 1, size: 10, tag: "memory by=pytorch", stack: "a"}, {op: trace.OpAlloc, id: 2, size: 50, tag: "pinned by=pytorch"},
				{op: trace.OpAlloc, id: 3, size: 20, tag: "context"}, {op: trace.OpFree, id: 1, size: 10, tag: "memory by=pytorch"},
				{op: trace.OpSegmentMap, size: 20, tag: "physical"},
			},
			Level{
				Live: 20, Peak: 30, Allocs: 3,
				Tags: []Group{
					{Name: "pinned by pytorch", Live: 50, Peak: 50, Blocks: 1, Allocs: 1, Beside: true},
					{Name: "context", Live: 20, Peak: 20, Blocks: 1, Allocs: 1}, {Name: "memory by pytorch", Peak: 10, Allocs: 1},
				},
				Streams: []Group{}, Stacks: []Group{{Name: "a", Peak: 10, Allocs: 1}},
			},
		},
		"a pool": {
			[]row{
				{op: trace.OpSegmentAlloc, size: 64, tag: "pool by=rapids"}, {op: trace.OpAlloc, id: 1, size: 10, stream: 7, tag: "pool by=rapids"},
				{op: trace.OpSegmentFree, size: 32, tag: "pool by=rapids"},
			},
			Level{
				Live: 32, Peak: 64, Allocs: 1,
				Tags: []Group{
					{Name: "pool by rapids", Live: 32, Peak: 64}, {Name: "in pools by rapids", Live: 10, Peak: 10, Blocks: 1, Allocs: 1, Beside: true},
				},
				Streams: []Group{{Name: "7", Live: 10, Peak: 10, Blocks: 1, Allocs: 1}}, Stacks: []Group{},
			},
		},
		"refused": {
			[]row{{op: trace.OpOOM, size: 99, tag: "memory"}, {op: trace.OpSample, size: 5, tag: "card"}},
			Level{Refused: 1, Tags: []Group{}, Streams: []Group{}, Stacks: []Group{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			texts := column.NewStrings()
			d := NewDriver(texts)
			for _, r := range c.rows {
				e := r.event(texts)
				d.Add(&e)
			}
			c.want.UntilNS = start
			if diff := cmp.Diff(map[int32]*Level{0: &c.want}, d.Levels(start)); diff != "" {
				t.Errorf("wanted -, got +\n%s", diff)
			}
			if len(d.stacks) > 0 {
				t.Errorf("stacks of %d blocks, none of which lives", len(d.stacks))
			}
		})
	}
}

// TestGroupsBound tells so many stacks apart, and takes the rest together.
func TestGroupsBound(t *testing.T) {
	texts := column.NewStrings()
	f := NewFramework(texts)
	const n = maxGroups + 100
	for i := range int64(n) {
		f.Add(row{op: trace.OpAlloc, size: 1, addr: uint64(i), stack: fmt.Sprint("s", i)}.event(texts))
	}
	l := f.Levels(start)[0]
	if len(l.Stacks) != maxShown || l.Stacks[0].Name != "others" || l.Stacks[0].Live != 100 {
		t.Errorf("%d stacks, the first is %+v", len(l.Stacks), l.Stacks[0])
	}
	for i := range int64(n) {
		f.Add(row{op: trace.OpFree, addr: uint64(i)}.event(texts))
	}
	if l := f.Levels(start)[0]; l.Live != 0 || l.Stacks[0].Live != 0 || l.Stacks[0].Blocks != 0 || l.Peak != n {
		t.Errorf("after all are freed: %d bytes, %+v", l.Live, l.Stacks[0])
	}
}

func TestRate(t *testing.T) {
	for name, c := range map[string]struct {
		at   []int64 // milliseconds
		now  int64
		want float64
	}{
		"nothing":                {nil, 9000, 0},
		"in its first second":    {[]int64{100, 200}, 900, 0},
		"a whole second":         {[]int64{100, 200}, 1900, 2},
		"two":                    {[]int64{100, 200, 1100}, 2100, 1.5},
		"long ago":               {[]int64{100, 200}, 60_000, 0},
		"before a pause":         {[]int64{100, 60_100}, 61_000, 0.2},
		"this second is too new": {[]int64{100, 1100, 2100, 3100, 4100, 5100, 5200}, 5900, 1},
		"out of order":           {[]int64{1100, 100}, 2000, 2},
		"before all time":        {[]int64{-5000}, 1000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var r rate
			for _, ms := range c.at {
				r.add(ms * 1e6)
			}
			if got := r.at(c.now * 1e6); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// BenchmarkDriver takes in allocs and frees of 1000 blocks that live at a time.
func BenchmarkDriver(b *testing.B) {
	texts := column.NewStrings()
	tag := texts.Code("memory by=pytorch")
	for _, stack := range []string{"", "main;step"} {
		b.Run("stack="+stack, func(b *testing.B) {
			d := NewDriver(texts)
			e := trace.Event{TimeNS: start, Size: 1 << 20, Tag: tag, Stack: texts.Code(stack)}
			for i := int64(0); b.Loop(); i++ {
				e.TimeNS += 1000
				e.Op, e.ID = trace.OpAlloc, i
				d.Add(&e)
				e.Op, e.ID = trace.OpFree, i-1000
				d.Add(&e)
			}
		})
	}
}
