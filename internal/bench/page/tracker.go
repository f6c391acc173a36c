package page

import (
	"cmp"
	"slices"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
)

// tracker records when and where an allocator has blocks, and memory.
type tracker struct {
	p      *replay.Program
	since  []int64 // by tensor, the time at which it was allocated
	at     []cuda.Ptr
	blocks []rectangle

	held     map[stretch]int64 // reserved memory, and since when
	reserved []rectangle
	bytes    int64 // reserved
	stale    bool  // held is out of date
	changed  int64 // the time since when it is
	column   int64 // of the map, in which held was last read
	until    int64 // the time after the last step that was made

	allocator blocks.Allocator
}

// stretch is a range of addresses.
type stretch struct {
	addr cuda.Ptr
	size int64
}

// rectangle is a stretch from a time to another, in nanoseconds since the beginning.
type rectangle struct {
	stretch
	from, to int64
}

func newTracker(p *replay.Program) *tracker {
	return &tracker{p: p, since: make([]int64, len(p.Sizes)), at: make([]cuda.Ptr, len(p.Sizes)), held: map[stretch]int64{}, column: -1}
}

// watch returns a watch that follows an allocator and calls next.
func (t *tracker) watch(a blocks.Allocator, next replay.Watch) replay.Watch {
	t.allocator = a
	return func(step int, at cuda.Ptr) {
		next(step, at)
		now := t.now(step)
		switch tensor := t.p.Tensors[step]; t.p.Kinds[step] {
		case replay.Alloc:
			t.at[tensor], t.since[tensor] = at, now
		case replay.Free, replay.Complete:
			t.end(tensor, now)
		}
		if bytes := a.Stats().Reserved; bytes != t.bytes {
			if !t.stale {
				t.changed = now
			}
			t.bytes, t.stale = bytes, true
		}
		t.until = now + 1
		if column := t.columnOf(now); t.stale && column != t.column {
			t.column = column
			t.settle()
		}
	}
}

// now returns the time of a step. If no time passes in the program, it is the number of the step.
func (t *tracker) now(step int) int64 {
	if t.p.DurationNS() == 0 {
		return int64(step)
	}
	return t.p.TimesNS[step] - t.p.TimesNS[0]
}

// span returns the time after the last step.
func (t *tracker) span() int64 { return t.now(max(t.p.Steps()-1, 0)) + 1 }

func (t *tracker) columnOf(now int64) int64 { return int64(float64(now) / float64(t.span()) * columns) }

func (t *tracker) end(tensor int32, now int64) {
	if at := t.at[tensor]; at != 0 {
		size := (t.p.Sizes[tensor] + t.p.Align - 1) / t.p.Align * t.p.Align
		t.blocks = append(t.blocks, rectangle{stretch{at, size}, t.since[tensor], now})
		t.at[tensor] = 0
	}
}

// settle reads the holdings if they have changed.
func (t *tracker) settle() {
	if t.stale {
		t.stale = false
		t.hold(t.allocator.Holdings(), t.changed)
	}
}

// hold ends what is no longer reserved and starts what is new.
func (t *tracker) hold(holdings []blocks.Holding, now int64) {
	current := map[stretch]bool{}
	for _, h := range holdings {
		if h.Size > 0 {
			current[stretch{h.Address, h.Size}] = true
		}
	}
	for s, from := range t.held {
		if !current[s] {
			t.reserved = append(t.reserved, rectangle{s, from, now})
			delete(t.held, s)
		}
	}
	for s := range current {
		if _, ok := t.held[s]; !ok {
			t.held[s] = now
		}
	}
}

// raster ends what is left when the replay ended, and draws everything; nil if there is nothing.
func (t *tracker) raster() *raster {
	t.settle()
	for tensor := range t.at {
		t.end(int32(tensor), t.until)
	}
	t.hold(nil, t.until)
	if len(t.reserved) == 0 {
		return nil
	}
	r := newRaster(t.ranges(), t.span())
	r.Live, r.Reserved = r.draw(t.blocks), r.draw(t.reserved)
	return r
}

// ranges returns all addresses at which there ever was memory, in order and without overlap.
func (t *tracker) ranges() []addresses {
	slices.SortFunc(t.reserved, func(a, b rectangle) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.size, b.size)) })
	var all []addresses
	for _, r := range t.reserved {
		if n := len(all) - 1; n >= 0 && r.addr < all[n].end() {
			all[n].Size = max(all[n].Size, int64(r.addr-all[n].Addr)+r.size)
			continue
		}
		all = append(all, addresses{Addr: r.addr, Size: r.size})
	}
	offset := int64(0)
	for i := range all {
		all[i].Offset = offset
		offset += all[i].Size
	}
	return all
}
