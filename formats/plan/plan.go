package plan

// Tensor is one row of a plan: a tensor's lifetime and its place.
type Tensor struct {
	ID      int64 // of the trace
	Size    int64 // bytes as requested
	Alloc   int64 // row of the trace at which it is allocated
	Free    int64 // row at which its memory is reusable; the number of rows if it never is
	AllocNS int64 // times of those rows, nanoseconds since the Unix epoch
	FreeNS  int64
	Device  int32
	Stream  int64
	Pool    int32 // code of the private pool's name
	Arena   int32 // code of the arena's name; each (device, arena) is an address range of its own
	Offset  int64 // bytes from the start of its arena
	Tag     int32 // code of the tag that the trace has for it, with " (guess)" behind one that is a guess; 0 for none
}

// Batch holds consecutive rows, one slice per column, all of the same length, ordered by Alloc.
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
	Tag     []int32
}

// Repeated is the suffix of the names of the arenas that a plan with a period repeats. A tensor that is allocated there in the rows
// [First, End) is allocated again every Period rows, in the same place. It lives for less than a period, and may live beyond End.
const Repeated = ".iteration"

// Step is the value of RowsOf in the plan of a graph's step. Its rows are the times at which the step allocates or frees memory; Digest is
// that of the graph's file, and Source the graph's name. For ids see [StepID].
const Step = "step"

// StepID returns the id of the n-th tensor, from 1, that is allocated in a step. tensor is its number in the graph, or -1 for memory
// that is no tensor of the graph.
func StepID(n int64, tensor int32) int64 { return n*maxTensors + int64(tensor) + 1 }

// maxTensors is above the number of tensors that a graph may have.
const maxTensors = 1 << 21

// Meta describes a plan as a whole.
type Meta struct {
	Peak       int64  // bytes: the sum of the ends of all arenas
	LowerBound int64  // bytes: the lower bound for any layout of these tensors in these arenas
	Solver     string // the solver that found it
	SolveNS    int64  // nanoseconds that this took
	Optimal    bool   // Peak is proven to be minimal
	Alignment  int64  // bytes: every offset is a multiple of it, every size is rounded up to one
	Rows       int64  // rows of the trace
	First      int64  // the plan holds the tensors that are live in rows [First, End) of the trace
	End        int64
	Period     int64  // 0, or End - First: the plan repeats forever, see [Repeated]
	Digest     string // SHA-256 of the trace file, in hex
	Source     string // what the trace was made from
	Devices    []string
	Capacity   int64
	RowsOf     string // what Rows counts: "" for the rows of a trace, or [Step]

	// What a replay of the traced allocator needs besides the tensors.
	AllocConf   string  // its settings, in the syntax of PYTORCH_CUDA_ALLOC_CONF
	Segments    []int64 // device, address and size of each segment that it obtained from the driver, in order
	Emptied     []int64 // device and row of each time its cache was emptied
	Preexisting int64   // number of tensors that are older than the recording
}
