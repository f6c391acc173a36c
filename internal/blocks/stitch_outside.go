package blocks

import "gm/internal/cuda"

// Blocks of a Stitch that are freed may stay outside of it, with the Outside of its Torch, which hands them out again for requests of
// their size and stream, in the order of their ranks. To the Stitch they are handed out meanwhile. What it is told of the bytes that the
// Outside has handed out (SetAllocatedOutside) is less by theirs.

// Keepable reports whether blocks that are freed may stay outside: with a single stream, whose memory no other waits for, and while no
// events are to be looked at and requests are neither recorded nor compared with a plan.
func (s *Stitch) Keepable() bool {
	return !s.compared && len(s.heaps) == 1 && len(s.lender.queues) == 0
}

// Rank returns the order of a block that is handed out among those of its size and stream, of which the Stitch itself prefers the first. It
// returns -1 if p is not a block of size bytes that may stay outside.
func (s *Stitch) Rank(p cuda.Ptr, size int64) int32 {
	id, ok := s.byPtr.Get(p)
	if !ok || s.places[id].state != placeLive || s.places[id].size != size || s.lender.lent(id) {
		return -1
	}
	return s.places[id].rank
}

// FreeKept frees a block that was freed outside. The Outside counts its bytes from now on.
func (s *Stitch) FreeKept(p cuda.Ptr) error {
	before := s.stats.Allocated
	err := s.Free(p)
	s.torch.setAllocated(s.torch.outside.allocated + before - s.stats.Allocated)
	return err
}
