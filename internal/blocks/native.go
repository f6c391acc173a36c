package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

var nativeEntry = Entry{
	Name: "native", About: "cudaMalloc and cudaFree for every request", Bound: true, OneAddress: true,
	configure: withoutSettings(func(dev cuda.Device, _ *Job) (Allocator, error) { return NewNative(dev), nil }),
}

// Native passes every request on to the driver, as cudaMalloc and cudaFree, and caches nothing. Memory that another stream still uses is
// freed once that stream is done, as cudaFree would wait for it.
type Native struct {
	dev     cuda.Device
	index   index
	live    []nativeBlock
	unused  []int32
	lender  lender
	failure error // of deferred calls of cudaFree, for the next Malloc or Empty to return
	stats   Stats
}

type nativeBlock struct {
	ptr    cuda.Ptr
	size   int64 // as requested
	stream cuda.Stream
}

// NewNative returns an allocator on dev.
func NewNative(dev cuda.Device) *Native {
	n := &Native{dev: dev, index: newIndex()}
	n.lender = newLender(dev, func(id int32) { n.failure = errors.Join(n.failure, n.release(id)) })
	return n
}

// Malloc implements Allocator.
func (n *Native) Malloc(size int64, stream cuda.Stream, _ Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil || size == 0 {
		return 0, err
	}
	if err := errors.Join(n.lender.process(), n.takeFailure()); err != nil {
		return 0, err
	}
	p, err := n.dev.MemAlloc(size)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		if err := n.Empty(); err != nil {
			return 0, err
		}
		p, err = n.dev.MemAlloc(size)
	}
	if errors.Is(err, cuda.ErrOutOfMemory) {
		return 0, n.stats.oom(size)
	} else if err != nil {
		return 0, fmt.Errorf("allocate: %w", err)
	}
	b := nativeBlock{p, size, stream}
	if last := len(n.unused) - 1; last >= 0 {
		n.live[n.unused[last]] = b
		n.index.Put(p, n.unused[last])
		n.unused = n.unused[:last]
	} else {
		n.index.Put(p, int32(len(n.live)))
		n.live = append(n.live, b)
	}
	n.stats.allocate(roundUp(size, minBlockSize))
	n.stats.reserve(cuda.AllocSize(size))
	return p, nil
}

// Free implements Allocator.
func (n *Native) Free(p cuda.Ptr) error {
	if p == 0 {
		return nil
	}
	id, ok := n.index.Take(p)
	if !ok {
		return fmt.Errorf("free of %#x: %w", p, errUnknownAddress)
	}
	n.stats.Allocated -= roundUp(n.live[id].size, minBlockSize)
	if n.lender.lent(id) {
		return n.lender.await(id)
	}
	return n.release(id)
}

func (n *Native) release(id int32) error {
	b := n.live[id]
	n.unused = append(n.unused, id)
	n.stats.Reserved -= cuda.AllocSize(b.size)
	if err := n.dev.MemFree(b.ptr); err != nil {
		return fmt.Errorf("free: %w", err)
	}
	return nil
}

// RecordStream implements Allocator.
func (n *Native) RecordStream(p cuda.Ptr, stream cuda.Stream) error {
	if p == 0 {
		return nil
	}
	id, ok := n.index.Get(p)
	if !ok {
		return fmt.Errorf("record stream of %#x: %w", p, errUnknownAddress)
	}
	if stream != n.live[id].stream {
		n.lender.borrow(id, stream)
	}
	return nil
}

// Empty implements Allocator: nothing is cached, but it frees the blocks that wait for a stream.
func (n *Native) Empty() error { return errors.Join(n.lender.synchronize(), n.takeFailure()) }

func (n *Native) takeFailure() error {
	err := n.failure
	n.failure = nil
	return err
}

// Stats implements Allocator.
func (n *Native) Stats() Stats { return n.stats }

// Holdings implements Allocator: each block.
func (n *Native) Holdings() []Holding {
	var all []Holding
	add := func(id int32) *Holding {
		b := &n.live[id]
		all = append(all, Holding{Address: b.ptr, Size: cuda.AllocSize(b.size), Stream: b.stream, Round: toMinBlock})
		return &all[len(all)-1]
	}
	n.index.Each(func(_ cuda.Ptr, id *int32) {
		h := add(*id)
		h.Uses = []Use{{h.Address, h.Size}}
	})
	for id := range n.lender.events {
		h := add(id)
		h.Pending = h.Size
	}
	return all
}
