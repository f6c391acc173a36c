package trace

// Meta describes a trace as a whole. Zero values mean unknown.
type Meta struct {
	Devices    []string // names of the GPUs, by ordinal
	Capacity   int64    // bytes of memory of each GPU
	Host       string
	PID        int64
	Rank       int64 // of WorldSize processes
	LocalRank  int64 // among those of the host
	WorldSize  int64
	Command    string // the command line that was traced
	Source     string // what the trace was made from, such as "pytorch snapshot opt13b.pickle.gz"
	Alignment  int64  // bytes to which the traced allocator rounds each request; 1 when it does not
	Incomplete string // what is missing from the recording; "" if nothing is known to be
	AllocConf  string // the traced allocator's settings, in the syntax of PYTORCH_CUDA_ALLOC_CONF
}
