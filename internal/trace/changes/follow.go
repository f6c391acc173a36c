package changes

import (
	"errors"
	"fmt"

	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// follower tracks the live allocations of a device.
type follower struct {
	*Contents
	span       overview.Span   // the section
	iterations []overview.Span // not yet ended
	counted    int64           // row from which allocations in iterations are counted
	begun      bool
	live       map[int64]block  // by id
	streams    map[int64]int32  // numbers, by handle
	tags       map[int32]tagged // by code
	total      int64            // live bytes
	reserved   int64
	peaks      int64 // how often total reached a new peak
	growth     *growths
}

// block is a live allocation.
type block struct {
	*group
	fresh bool // allocated in the section
}

// tagged is what a tag says about an allocation.
type tagged struct {
	early    bool
	obtained bool
}

func newFollower(device int32, level trace.Level, text func(int32) string) *follower {
	return &follower{
		Contents: &Contents{Device: device, Level: level, text: text, groups: map[key]*group{}},
		live:     map[int64]block{}, streams: map[int64]int32{0: 0}, tags: map[int32]tagged{},
	}
}

// whole sets the section to a whole trace with that many rows. The first iteration by marks includes the building of the model: what is
// allocated in it does not count.
func (f *follower) whole(rows int64, d *overview.Device) {
	f.span = overview.Span{End: rows}
	f.iterations, f.Iterations = d.Iterations, len(d.Iterations)
	if d.Marked {
		f.counted = d.Iterations[1].First
		f.Iterations--
	}
	f.growth = newGrowths()
}

// part sets the section to one iteration.
func (f *follower) part(span overview.Span) {
	f.span, f.iterations, f.Iterations = span, []overview.Span{span}, 1
}

// advance moves to a row, before the effect of the row. It reports whether the section ends there.
func (f *follower) advance(row int64) bool {
	if !f.begun && row >= f.span.First {
		f.begun = true
		f.Peak, f.Reserved = f.total, f.reserved
		f.peaks++
	}
	for len(f.iterations) > 0 && row >= f.iterations[0].End {
		f.iterations = f.iterations[1:]
		if f.growth != nil {
			f.growth.iteration()
		}
	}
	if row != f.span.End {
		return false
	}
	f.End = f.total
	for _, g := range f.groups {
		g.settle(f.peaks)
	}
	if f.growth != nil {
		f.Leaks = f.growth.leaks(f.Contents)
	}
	return true
}

// add processes a row of the device and the level.
func (f *follower) add(row int64, e *trace.Event) error {
	switch e.Op {
	case trace.OpAlloc:
		f.alloc(row, e)
	case trace.OpFree, trace.OpFreeCompleted:
		if b, ok := f.live[e.ID]; ok {
			delete(f.live, e.ID)
			f.move(b.group, -b.size, -1)
			if b.fresh {
				b.kept--
			}
		}
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		f.reserve(e, e.Size)
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		f.reserve(e, -e.Size)
	}
	if len(f.groups) > maxGroups {
		return fmt.Errorf("row %d: more than %d %w", row, maxGroups, ErrTooMany)
	}
	return nil
}

// ErrTooMany is wrapped by the error about a trace with more groups than are kept apart.
var ErrTooMany = errors.New("different stacks, sizes and streams")

// maxGroups bounds the groups of a device, at about 300 bytes each.
const maxGroups = 2 << 20

func (f *follower) alloc(row int64, e *trace.Event) {
	tag, known := f.tags[e.Tag]
	if !known {
		tag = f.tagged(e.Tag)
		f.tags[e.Tag] = tag
	}
	if f.Level == trace.LevelDriver && !tag.obtained {
		return
	}
	f.HasStacks = f.HasStacks || e.Stack != 0
	k := key{stack: e.Stack, size: e.Size, stream: f.stream(e.Stream), early: tag.early}
	if f.Level == trace.LevelDriver {
		k.tag = e.Tag
	}
	g := f.group(k)
	fresh := row >= f.span.First && !tag.early
	f.live[e.ID] = block{g, fresh}
	f.move(g, e.Size, 1)
	if !fresh {
		return
	}
	g.kept++
	g.made.add(e.Size, 1)
	if len(f.iterations) > 0 && row >= max(f.iterations[0].First, f.counted) {
		g.steady.add(e.Size, 1)
	}
}

func (f *follower) tagged(code int32) tagged {
	text := f.text(code)
	kind, _ := trace.ParseDriverTag(text)
	_, early := trace.ParsePreexisting(text)
	return tagged{early: early, obtained: kind.Obtained()}
}

// stream returns the number of a stream.
func (f *follower) stream(handle int64) int32 {
	n, known := f.streams[handle]
	if !known {
		n = int32(len(f.streams))
		f.streams[handle] = n
	}
	return n
}

func (f *follower) group(k key) *group {
	g := f.groups[k]
	if g == nil {
		g = &group{key: k}
		f.groups[k] = g
	}
	return g
}

// reserve processes a row about a segment. The driver's segments are device memory of a pool.
func (f *follower) reserve(e *trace.Event, bytes int64) {
	if f.Level == trace.LevelDriver {
		if e.Op == trace.OpSegmentAlloc || e.Op == trace.OpSegmentFree {
			f.move(f.group(key{tag: e.Tag}), bytes, 0)
		}
		return
	}
	f.reserved += bytes
	if f.begun {
		f.Reserved = max(f.Reserved, f.reserved)
	}
}

// move adds live bytes and blocks to a group, or subtracts them.
func (f *follower) move(g *group, bytes, blocks int64) {
	g.settle(f.peaks)
	g.now.add(bytes, blocks)
	f.total += bytes
	if f.growth != nil {
		f.growth.touch(g)
	}
	if f.begun && f.total > f.Peak {
		f.Peak = f.total
		f.peaks++
	}
}

// settle updates atPeak if there were new peaks; peaks counts all so far. The group has not changed since the last one.
func (g *group) settle(peaks int64) {
	if g.peaks < peaks {
		g.atPeak, g.peaks = g.now, peaks
	}
}
