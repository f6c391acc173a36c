package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"gm/internal/cuda"
)

// event is a request, or its end.
type event struct {
	time   int64 // nanoseconds since the Unix epoch
	ptr    cuda.Ptr
	size   int64
	stream cuda.Stream
	pool   int32
	what   eventKind
}

type eventKind int32

const (
	eventAlloc eventKind = iota
	eventFree
)

// events holds the last requests of a device, in memory that Go does not manage and that is taken as it fills up.
type events struct {
	ring []event
	n    uint64 // ever
}

func newEvents(size int) (*events, error) {
	bytes := size * int(unsafe.Sizeof(event{}))
	data, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map memory for %d events: %w", size, err)
	}
	return &events{ring: unsafe.Slice((*event)(unsafe.Pointer(&data[0])), size)}, nil
}

func (v *events) add(what eventKind, e *entry) {
	v.ring[v.n%uint64(len(v.ring))] = event{
		time: time.Now().UnixNano(), ptr: e.ptr, size: e.requested, stream: e.stream, pool: e.pool, what: what,
	}
	v.n++
}

// lost returns how many events were overwritten.
func (v *events) lost() uint64 { return v.n - min(v.n, uint64(len(v.ring))) }

// each calls f for the events that are left, oldest first.
func (v *events) each(f func(e *event)) {
	for i := v.lost(); i < v.n; i++ {
		f(&v.ring[i%uint64(len(v.ring))])
	}
}
