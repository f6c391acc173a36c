package tensors

// Tensor is one row: an allocation.
type Tensor struct {
	ID        int64 // of the trace
	Size      int64 // bytes as requested
	Alloc     int64 // row of the trace at which it is allocated
	Free      int64 // row at which its memory is reusable; the number of rows if it never is
	AllocNS   int64 // times of those rows, nanoseconds since the Unix epoch; FreeNS is that of the last row if it is never reusable
	FreeNS    int64
	Device    int32
	Stream    int64
	Level     int32 // code of the level's name: framework or driver
	Pool      int32 // code of the private pool's name
	Tag       int32 // code of what it is for
	Certainty int32 // code of how sure the tag is
	Rule      int32 // code of the rule that says so
	Stack     int32 // code of the folded stack
}

// Batch holds consecutive rows, one slice per column, all of the same length, ordered by Alloc.
type Batch struct {
	ID        []int64
	Size      []int64
	Alloc     []int64
	Free      []int64
	AllocNS   []int64
	FreeNS    []int64
	Device    []int32
	Stream    []int64
	Level     []int32
	Pool      []int32
	Tag       []int32
	Certainty []int32
	Rule      []int32
	Stack     []int32
}

// Meta describes a table as a whole.
type Meta struct {
	Rows     int64    // of the trace
	Source   string   // what the trace was made from
	Devices  []string // names of the GPUs, by ordinal
	Capacity int64    // bytes of memory of each GPU
}
