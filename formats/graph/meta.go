package graph

// The sources of graphs.
const (
	SourceRecorded = "recorded" // a program that ran
	SourceShapes   = "shapes"   // the shapes of a model
)

// Meta describes a graph as a whole. Zero values mean unknown, except for the numbers of operators and tensors.
type Meta struct {
	Name      string // of the model or the program
	Device    string // product name of the GPU that the durations apply to
	Capacity  int64  // bytes of memory of the device
	Operators int64
	Tensors   int64
	ComputeNS int64  // nanoseconds: the sum of the durations of all operators
	PlainPeak int64  // bytes in use at the peak when no tensor is moved
	Complete  bool   // all memory that the step takes is a tensor; bytes beside the tensors are what lasts and the operator's own
	Order     string // the method that ordered the operators, as in "gmplan order"; empty if nobody did
	// LowerBound is a number of bytes: no order of the operators has a lower peak than this. 0 if it is not known.
	LowerBound int64
	Source     string // SourceRecorded or SourceShapes
	Host       string
	PID        int64
	Rank       int64 // of WorldSize processes
	LocalRank  int64 // among those of the host
	WorldSize  int64
	Command    string // the command line that was recorded
}
