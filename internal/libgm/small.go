package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"gm/internal/blocks"
	"gm/internal/cuda"
)

// small is Go's side of what C serves and holds: small requests (small.c), large ones (warm.c), and the live requests that are nothing
// special (held.c). It is called with the device's lock held.
type small struct {
	stitch  *blocks.Stitch // nil: C serves and holds nothing
	ordinal C.int
	given   *int64  // bytes that it has handed out
	most    *int64  // that given was since look
	keeps   *uint32 // 1: large blocks that are freed stay in C, warm; otherwise 0
	warm    *uint32 // how many are warm
	view    C.struct_gm_view
	taken   [256]cuda.Ptr // buffer of freeWarm
}

// newSmall returns the small requests of a device. C leaves all to Go where requests are recorded or compared with a plan, and where
// another allocator than stitch serves the large ones.
func newSmall(ordinal int, alloc blocks.Allocator, recorded bool) small {
	d := &C.gm_devices[ordinal]
	s := small{
		ordinal: C.int(ordinal), given: (*int64)(unsafe.Pointer(&d.given)), most: (*int64)(unsafe.Pointer(&d.given_most)),
		keeps: (*uint32)(unsafe.Pointer(&d.keeps)), warm: (*uint32)(unsafe.Pointer(&d.warm)),
	}
	if stitch, ok := alloc.(*blocks.Stitch); ok && !recorded {
		s.stitch = stitch
	}
	return s
}

// begin lets C serve requests.
func (s *small) begin() {
	if s.stitch != nil {
		s.stitch.Torch().ServeOutside(s)
		C.gm_held_begin(s.ordinal)
	}
}

// look tells the allocator how much C has handed out, and decides whether C is to keep large blocks that are freed.
func (s *small) look() {
	if s.stitch == nil {
		return
	}
	now, most := atomic.LoadInt64(s.given), atomic.LoadInt64(s.most)
	if most != now {
		atomic.StoreInt64(s.most, now)
	}
	s.stitch.SetAllocatedOutside(now, max(now, most))
	keeps := uint32(0)
	if s.stitch.Keepable() {
		keeps = 1
	}
	if atomic.LoadUint32(s.keeps) != keeps {
		atomic.StoreUint32(s.keeps, keeps)
	}
}

// freeWarm frees the large blocks that were freed to C.
func (s *small) freeWarm() error {
	var errs []error
	for s.stitch != nil && atomic.LoadUint32(s.warm) > 0 {
		n := C.gm_warm_take(s.ordinal, (*C.uint64_t)(unsafe.Pointer(&s.taken)), C.size_t(len(s.taken)))
		for _, p := range s.taken[:n] {
			if err := s.stitch.FreeKept(p); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// rank returns the order of a request's place among those of its size, -1 if its block cannot be kept by C.
func (s *small) rank(e *entry) int32 {
	if s.stitch == nil || e.special() {
		return -1
	}
	return s.stitch.Rank(e.ptr, e.taken)
}

// TakeIdle implements blocks.Outside.
func (s *small) TakeIdle() cuda.Ptr { return cuda.Ptr(C.gm_small_remove(s.ordinal)) }

// Return implements blocks.Outside.
func (s *small) Return(p cuda.Ptr) { C.gm_held_return(s.ordinal, C.uint64_t(p)) }

// find returns a live request that C holds. If lend is set it is C's no more.
func (s *small) find(p cuda.Ptr, lend bool) (entry, bool) {
	if s.stitch == nil || !bool(C.gm_held_find(s.ordinal, C.uint64_t(p), C.bool(lend), &s.view)) {
		return entry{}, false
	}
	return entryOf(&s.view), true
}

// hold has C hold and count a request that is in the ledger, too. False: C holds none, or has no room.
func (s *small) hold(e *entry) bool {
	if s.stitch == nil || !bool(C.gm_held_room(s.ordinal)) {
		return false
	}
	C.gm_held_add(s.ordinal, C.uint64_t(e.ptr), C.size_t(e.requested), C.int64_t(e.taken), C.uint64_t(e.stream), true, -1)
	return true
}

// drop has C forget a request that was in the ledger, too, and count it as freed. Another thread may have freed it meanwhile.
func (s *small) drop(p cuda.Ptr) { C.gm_held_drop(s.ordinal, C.uint64_t(p)) }

func entryOf(v *C.struct_gm_view) entry {
	e := entry{ptr: cuda.Ptr(v.address), requested: int64(v.requested), taken: int64(v.taken), stream: cuda.Stream(v.stream)}
	if v.state != C.GM_LARGE_BLOCK {
		e.flags = inC
	}
	return e
}

// views returns all blocks of C: the large ones, and segment by segment the small ones.
func (s *small) views() []C.struct_gm_view {
	if s.stitch == nil {
		return nil
	}
	for room := 1 << 10; ; room *= 2 {
		views := make([]C.struct_gm_view, room)
		if n := int(C.gm_held_view(s.ordinal, &views[0], C.size_t(room))); n <= room {
			return views[:n]
		}
	}
}

// each calls f for the live requests that C holds.
func (s *small) each(f func(e *entry)) {
	for _, v := range s.views() {
		if v.state == C.GM_LIVE_BLOCK || v.state == C.GM_LARGE_BLOCK {
			e := entryOf(&v)
			f(&e)
		}
	}
}

// segments returns the segments that C serves, and the live requests by address: those of C and of Go's ledger.
func (s *small) segments(others *ledger) ([]blocks.SegmentView, map[cuda.Ptr]entry) {
	var all []blocks.SegmentView
	live := map[cuda.Ptr]entry{}
	others.Each(func(p cuda.Ptr, e *entry) { live[p] = *e })
	for _, v := range s.views() {
		if v.state == C.GM_LIVE_BLOCK || v.state == C.GM_LARGE_BLOCK {
			live[cuda.Ptr(v.address)] = entryOf(&v)
		}
		if v.state == C.GM_LARGE_BLOCK || v.state == C.GM_SPECIAL_BLOCK {
			continue
		}
		if v.first {
			all = append(all, blocks.SegmentView{Address: cuda.Ptr(v.address), Stream: cuda.Stream(v.stream), Small: true})
		}
		b := blocks.BlockView{Address: cuda.Ptr(v.address), Size: int64(v.taken), State: blocks.BlockFree}
		if _, ok := live[b.Address]; ok {
			b.State = blocks.BlockUsed
		} else if v.state == C.GM_AWAITED_BLOCK {
			b.State = blocks.BlockPending
		}
		last := &all[len(all)-1]
		last.Size += b.Size
		last.Blocks = append(last.Blocks, b)
	}
	return all, live
}

// end takes all requests from C for good, and calls f for each.
func (s *small) end(f func(e *entry)) {
	if s.stitch != nil {
		s.each(f)
		C.gm_held_end(s.ordinal)
		s.stitch = nil
	}
}
