package main

// #include "libgm.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"gm/internal/cuda"
)

// queue is the freed addresses of a device, which C pushes (devices.c). It is popped with the device's lock held.
type queue struct {
	slots  *[C.GM_FREES]slot
	popped uint64
	pushed *uint64
}

// slot is struct gm_freed.
type slot struct {
	turn    uint64
	address uint64
}

func newQueue(ordinal int) queue {
	d := &C.gm_devices[ordinal]
	return queue{
		slots:  (*[C.GM_FREES]slot)(unsafe.Pointer(&d.freed)),
		pushed: (*uint64)(unsafe.Pointer(&d.pushed)),
	}
}

// pop returns the next address that was freed.
func (q *queue) pop() (cuda.Ptr, bool) {
	s := &q.slots[q.popped%C.GM_FREES]
	if atomic.LoadUint64(&s.turn) != q.popped+1 {
		return 0, false
	}
	p := cuda.Ptr(s.address)
	atomic.StoreUint64(&s.turn, q.popped+C.GM_FREES)
	q.popped++
	return p, true
}

// settle waits until the addresses that are being pushed can be popped.
func (q *queue) settle() {
	for n := range atomic.LoadUint64(q.pushed) - q.popped {
		for atomic.LoadUint64(&q.slots[(q.popped+n)%C.GM_FREES].turn) != q.popped+n+1 {
			runtime.Gosched()
		}
	}
}
