package plan

// Tensor is one row of a plan: a tensor's life and the place it was given.
type Tensor struct {
	ID      int64 // of the trace
	Size    int64 // bytes as requested
	Alloc   int64 // row of the trace at which it comes to life
	Free    int64 // row at which its memory is reusable; the number of rows when it never is
	AllocNS int64 // times of those rows, nanoseconds since the Unix epoch
	FreeNS  int64
	Device  int32
	Stream  int64
	Pool    int32 // code of the private pool's name
	Arena   int32 // code of the arena's name; each (device, arena) is an address range of its own
	Offset  int64 // bytes from the start of its arena
}

// Batch holds consecutive rows, one slice a column, all of one length, ordered by Alloc.
type Batch struct {
	ID      []int64
	Size    []int64
	Alloc   []int64
	Free    []int64
	AllocNS []int64
	FreeNS  []int64
	Device  []int32
	Stream  []int64
	Pool    []int32
	Arena   []int32
	Offset  []int64
}

// Repeated ends the names of the arenas that a plan with a period repeats: what comes to life there in the rows [First, End)
// does so again every Period rows, in the same places. It is freed again within a period, if after End in the next repetition.
const Repeated = ".iteration"

// Step is what RowsOf is in the plan of a graph's step. Its rows are the times at which the step takes memory or gives it back; Digest is that
// of the graph's file, and Source the graph's name. For ids see [StepID].
const Step = "step"

// StepID returns the id of the n-th tensor, from 1, that comes to life in a step: tensor of the graph, or memory beside it when that is -1.
func StepID(n int64, tensor int32) int64 { return n*maxTensors + int64(tensor) + 1 }

// maxTensors is more than a graph has.
const maxTensors = 1 << 21

// Meta is what a plan says of itself as a whole.
type Meta struct {
	Peak       int64  // bytes: the ends of all arenas, added up
	LowerBound int64  // bytes: no layout of these tensors in these arenas takes less
	Solver     string // which solver found it
	SolveNS    int64  // how long that took
	Optimal    bool   // Peak is proven to be the least
	Alignment  int64  // bytes: every offset is a multiple, every size is rounded up to one
	Rows       int64  // rows of the trace
	First      int64  // the plan holds the tensors that live in rows [First, End) of the trace
	End        int64
	Period     int64  // 0, or End - First: the plan is repeated without end, see [Repeated]
	Digest     string // SHA-256 of the trace file, in hex
	Source     string // what the trace was made from
	Devices    []string
	Capacity   int64
	RowsOf     string // what the rows are of: empty for a trace, or [Step]

	// What a replay of the traced allocator needs beside the tensors.
	AllocConf   string  // its settings, in the syntax of PYTORCH_CUDA_ALLOC_CONF
	Segments    []int64 // device, address and size of each segment that it took from the driver, in their order
	Emptied     []int64 // device and row of each time that its cache was emptied
	Preexisting int64   // tensors that are older than the recording
}
