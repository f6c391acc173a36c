package trace

import "strings"

// Kind is the kind of memory that a row of the driver's level is about. It is the first word of the row's tag.
type Kind string

// The kinds of memory that a process obtains from the driver.
const (
	KindMemory   Kind = "memory"   // device memory: cuMemAlloc, cuMemAllocPitch, arrays
	KindPhysical Kind = "physical" // physical memory on a device: cuMemCreate; Addr is 0
	KindContext  Kind = "context"  // memory that creating a context took, as measured
	KindModule   Kind = "module"   // memory that loading code took, as measured
	KindPool     Kind = "pool"     // allocations in a memory pool (cuMemAllocAsync); segment rows record the growth of the pool
	KindManaged  Kind = "managed"  // memory that migrates between host and device: cuMemAllocManaged
	KindPinned   Kind = "pinned"   // host memory: cuMemHostAlloc, cuMemHostRegister, cuMemCreate on the host
)

// The kinds of a sample row: whose memory was measured.
const (
	KindCard    Kind = "card"    // all used memory of the GPU, by any process and the driver itself
	KindProcess Kind = "process" // memory of the GPU that the traced process uses
)

// Obtained reports whether an alloc of the kind is device memory of its own. The allocations of a pool are not: they are part of
// the memory that the pool obtained, which its segment rows record.
func (k Kind) Obtained() bool {
	return k == KindMemory || k == KindPhysical || k == KindContext || k == KindModule
}

const tagBy = " by="

// DriverTag returns the tag of a row of the driver's level. By names the library that requested the memory, such as "pytorch" or
// "nccl"; "" if it is unknown.
func DriverTag(k Kind, by string) string {
	if by == "" {
		return string(k)
	}
	return string(k) + tagBy + by
}

// ParseDriverTag splits a tag that DriverTag made.
func ParseDriverTag(tag string) (k Kind, by string) {
	kind, by, _ := strings.Cut(tag, tagBy)
	return Kind(kind), by
}
