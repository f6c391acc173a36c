// Package host is memory of the host that a GPU is to copy to and from: one range of addresses, on the NUMA node of the GPU, whose pages
// several threads touch before the driver pins them, which is slow to touch them by itself (cuMemHostAlloc of 1 GiB takes ten times as
// long as cuMemHostRegister of 1 GiB that was touched, on an H200).
package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Page returns the size of a page of the system in bytes, which ranges begin and end at: 4 KiB on x86-64, 64 KiB on many systems for aarch64.
func Page() int64 { return int64(os.Getpagesize()) }

const (
	touchers = 8       // threads at most
	stretch  = 8 << 20 // bytes that a thread touches at a time
	maxNodes = 1024
)

// Memory is a range of addresses. Its pages are taken as they are touched.
type Memory struct {
	bytes []byte
	node  int
}

// Map reserves a range of size bytes, a multiple of Page(), for pages of a NUMA node, or of any node if that is negative. A forked child
// does not have the range.
func Map(size int64, node int) (*Memory, error) {
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of host memory: %w", size, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a kernel without huge pages pins small ones, in more time
	_ = unix.Madvise(b, unix.MADV_DONTFORK) // a kernel that does not know it copies what the parent writes, which is all the harm
	m := &Memory{bytes: b, node: -1}
	if node >= 0 && node < maxNodes && prefer(b, node) == nil {
		m.node = node
	}
	return m, nil
}

// prefer has the pages of a range come from a node for as long as it has any (mbind, MPOL_PREFERRED).
func prefer(b []byte, node int) error {
	var mask [maxNodes / 64]uint64
	mask[node/64] = 1 << (node % 64)
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MPOL_PREFERRED,
		uintptr(unsafe.Pointer(&mask)), maxNodes+1, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Bytes returns the range. It is not on Go's heap.
func (m *Memory) Bytes() []byte { return m.bytes }

// Address returns where the range begins.
func (m *Memory) Address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes))) }

// Node returns the NUMA node that the pages come from, -1 if the kernel chooses.
func (m *Memory) Node() int { return m.node }

// Unmap unmaps the range. Nothing may use it any longer, not even the driver.
func (m *Memory) Unmap() error {
	b := m.bytes
	m.bytes = nil
	return unix.Munmap(b)
}

// Touch takes the pages of a part of a range, which begins at a page and was never written. It fails where memory has run out.
func Touch(part []byte) error { return each(part, touch) }

// Populate takes the pages of a part of a range, which begins at a page, of which some may be in use. Linux has that since 5.14; before it
// fails.
func Populate(part []byte) error { return each(part, populate) }

// each has several threads take stretches of a part.
func each(part []byte, take func(stretch []byte) error) error {
	var (
		next  atomic.Int64
		group sync.WaitGroup
		mu    sync.Mutex
		errs  error
	)
	for range min(touchers, runtime.NumCPU(), (len(part)+stretch-1)/stretch) {
		group.Go(func() {
			if err := takeNext(part, &next, take); err != nil {
				mu.Lock()
				errs = errors.Join(errs, err)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return errs
}

// takeNext takes the stretches that no other thread does.
func takeNext(part []byte, next *atomic.Int64, take func(stretch []byte) error) error {
	for {
		at := int(next.Add(stretch)) - stretch
		if at >= len(part) {
			return nil
		}
		if err := take(part[at:min(at+stretch, len(part))]); err != nil {
			return err
		}
	}
}

func touch(part []byte) error {
	err := populate(part)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	for at := 0; at < len(part); at += os.Getpagesize() { // Linux before 5.14
		part[at] = 0
	}
	return nil
}

func populate(part []byte) error {
	if err := unix.Madvise(part, unix.MADV_POPULATE_WRITE); err != nil {
		return fmt.Errorf("take %d bytes of host memory: %w", len(part), err)
	}
	return nil
}

// Release releases the pages of a part of a range, which are untouched then. Their contents are lost.
func Release(part []byte) error { return unix.Madvise(part, unix.MADV_DONTNEED) }
