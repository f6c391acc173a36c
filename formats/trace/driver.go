package trace

import "strings"

// Kind says what a row of the driver's level is about. It is the first word of the row's tag.
type Kind string

// The kinds of memory that a process obtains from the driver.
const (
	KindMemory   Kind = "memory"   // device memory: cuMemAlloc, cuMemAllocPitch, arrays
	KindPhysical Kind = "physical" // physical memory on a device: cuMemCreate; Addr is 0
	KindContext  Kind = "context"  // what a context took when it was created, as measured
	KindModule   Kind = "module"   // what code took when it was loaded, as measured
	KindPool     Kind = "pool"     // allocations in a memory pool (cuMemAllocAsync), and as segment rows the growth of the pool
	KindManaged  Kind = "managed"  // memory that migrates between host and device: cuMemAllocManaged
	KindPinned   Kind = "pinned"   // host memory: cuMemHostAlloc, cuMemHostRegister, cuMemCreate on the host
)

// The kinds of a sample row: whose memory was measured.
const (
	KindCard    Kind = "card"    // all that is used of the GPU, by any process and the driver itself
	KindProcess Kind = "process" // what the traced process uses of the GPU
)

// Obtained tells whether an alloc of the kind is device memory of its own. The allocations of a pool are not: they are part of what
// the pool obtained, which its segment rows tell.
func (k Kind) Obtained() bool {
	return k == KindMemory || k == KindPhysical || k == KindContext || k == KindModule
}

const tagBy = " by="

// DriverTag returns the tag of a row of the driver's level. By names the library that asked, such as "pytorch" or "nccl"; "" leaves
// it out.
func DriverTag(k Kind, by string) string {
	if by == "" {
		return string(k)
	}
	return string(k) + tagBy + by
}

// ParseDriverTag takes a tag apart that DriverTag made.
func ParseDriverTag(tag string) (k Kind, by string) {
	kind, by, _ := strings.Cut(tag, tagBy)
	return Kind(kind), by
}
