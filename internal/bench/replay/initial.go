package replay

import (
	"cmp"
	"slices"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda"
)

// initial gathers the rows of a trace that describe the memory before its recording began.
type initial struct {
	segments []blocks.Segment
	live     []heldTensor
}

type heldTensor struct {
	blocks.Held
	key int64
}

// add adds a preexisting row; block is the bytes of a tensor's block, 0 if they are not known, and key is the caller's name for the tensor.
func (in *initial) add(e *trace.Event, block, key int64) {
	switch e.Op {
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		in.segments = append(in.segments, blocks.Segment{
			Addr: e.Addr, Size: e.Size, Stream: cuda.Stream(e.Stream), Pool: blocks.Pool(e.Pool),
			Expandable: e.Op == trace.OpSegmentMap,
		})
	case trace.OpAlloc:
		in.live = append(in.live, heldTensor{blocks.Held{Addr: e.Addr, Size: e.Size, Block: block}, key})
	}
}

// settle puts the live tensors into their segments, ordered by address, and returns the segments and the keys of the tensors in that order.
// It leaves out segments that overlap an earlier one, and tensors that lie in no known segment or begin where another does.
func (in *initial) settle() ([]blocks.Segment, []int64) {
	slices.SortFunc(in.segments, func(a, b blocks.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	in.segments = joinRanges(apart(in.segments))
	slices.SortFunc(in.live, func(a, b heldTensor) int { return cmp.Compare(a.Addr, b.Addr) })
	var keys []int64
	next := 0
	for i := range in.segments {
		s := &in.segments[i]
		for ; next < len(in.live) && in.live[next].Addr < s.Addr+uint64(s.Size); next++ {
			if n := len(s.Live); in.live[next].Addr >= s.Addr && (n == 0 || s.Live[n-1].Addr != in.live[next].Addr) {
				s.Live = append(s.Live, in.live[next].Held)
				keys = append(keys, in.live[next].key)
			}
		}
	}
	return in.segments, keys
}

// apart leaves out segments that overlap an earlier one.
func apart(segments []blocks.Segment) []blocks.Segment {
	var all []blocks.Segment
	for _, s := range segments {
		if n := len(all); n == 0 || s.Addr-all[n-1].Addr >= uint64(all[n-1].Size) {
			all = append(all, s)
		}
	}
	return all
}

// joinRanges joins mapped ranges that touch: the free memory on both sides of the seam is one block.
func joinRanges(segments []blocks.Segment) []blocks.Segment {
	var joined []blocks.Segment
	for _, s := range segments {
		if n := len(joined); n > 0 {
			last := &joined[n-1]
			if last.Expandable && s.Expandable && last.Addr+uint64(last.Size) == s.Addr && last.Stream == s.Stream && last.Pool == s.Pool {
				last.Size += s.Size
				continue
			}
		}
		joined = append(joined, s)
	}
	return joined
}
