package park

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gm/internal/swap/host"
)

const (
	// chunk is the most that is pinned at a time, in bytes.
	chunk = 256 << 20
	// pinners is how many chunks are pinned at a time: while the driver registers one, the pages of others are touched.
	pinners = 3
)

// registrar pins memory; *driver.Device is one.
type registrar interface {
	HostRegister(memory []byte) error
}

// arena is pinned memory of the host. It grows, and keeps what it has: to pin takes several times as long as to copy.
type arena struct {
	dev  registrar
	node int

	mu      sync.Mutex
	grown   sync.Cond // a chunk was pinned, or could not be
	pinned  int64     // bytes
	free    [][]byte
	unused  int64 // bytes in free
	whole   [][]byte
	pinning int   // chunks under way
	coming  int64 // bytes of them
	err     error
}

func newArena(dev registrar, node int) *arena {
	a := &arena{dev: dev, node: node}
	a.grown.L = &a.mu
	return a
}

// expect begins to pin what is missing of size bytes to be taken.
func (a *arena) expect(size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = nil
	var sizes []int64
	for missing := size - a.unused - a.coming; missing > 0; missing -= chunk {
		sizes = append(sizes, min(missing, chunk))
		a.coming += sizes[len(sizes)-1]
	}
	a.pinning += len(sizes)
	next := make(chan int64, len(sizes))
	for _, n := range sizes {
		next <- n
	}
	close(next)
	for range min(pinners, runtime.NumCPU(), len(sizes)) {
		go func() {
			for n := range next {
				a.grow(n)
			}
		}()
	}
}

// grow pins one more chunk, unless that has failed before.
func (a *arena) grow(size int64) {
	a.mu.Lock()
	failed := a.err != nil
	a.mu.Unlock()
	var part []byte
	var err error
	if !failed {
		part, err = a.pin(size)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pinning--
	a.coming -= size
	if part != nil {
		a.pinned += size
		a.unused += size
		a.free, a.whole = append(a.free, part), append(a.whole, part)
	}
	a.err = errors.Join(a.err, err)
	a.grown.Broadcast()
}

func (a *arena) pin(size int64) ([]byte, error) {
	memory, err := host.Map(size, a.node)
	if err != nil {
		return nil, err
	}
	part := memory.Bytes()
	if err = host.Touch(part); err == nil {
		err = a.dev.HostRegister(part)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pin %d bytes of host memory: %w", size, err), memory.Unmap())
	}
	return part, nil
}

// ahead pins up to size bytes in all, chunk by chunk, as long as goOn says so. What fails is told by the next take.
func (a *arena) ahead(size int64, goOn func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.err == nil && a.pinning == 0 && a.pinned < size && goOn() {
		n := min(size-a.pinned, chunk)
		a.pinning, a.coming = a.pinning+1, a.coming+n
		a.mu.Unlock()
		a.grow(n)
		a.mu.Lock()
	}
}

// take returns size bytes, in parts that were each pinned as one piece. It waits for what is being pinned.
func (a *arena) take(size int64) (parts [][]byte, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.unused < size && a.pinning > 0 {
		a.grown.Wait()
	}
	if a.unused < size {
		return nil, errors.Join(fmt.Errorf("%d bytes of pinned host memory are left for a piece of %d", a.unused, size), a.err)
	}
	for rest := size; rest > 0; {
		last := len(a.free) - 1
		part := a.free[last]
		if int64(len(part)) > rest {
			a.free[last], part = part[rest:], part[:rest]
		} else {
			a.free = a.free[:last]
		}
		parts = append(parts, part)
		rest -= int64(len(part))
	}
	a.unused -= size
	return parts, nil
}

// reset takes all memory back.
func (a *arena) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(a.free[:0], a.whole...)
	a.unused = a.pinned
}

// held returns the bytes that are pinned.
func (a *arena) held() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pinned
}

// room returns how many bytes can be taken if so many may be pinned in all.
func (a *arena) room(most int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unused + max(most-a.pinned, 0)
}
