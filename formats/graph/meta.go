package graph

// What a graph is made from.
const (
	SourceRecorded = "recorded" // a program that ran
	SourceShapes   = "shapes"   // the shapes of a model
)

// Meta is what a graph says of itself as a whole. But for the numbers of operators and tensors, zero values mean unknown.
type Meta struct {
	Name      string // of the model or the program
	Device    string // the product's name that the durations hold for
	Capacity  int64  // bytes of memory of the device
	Operators int64
	Tensors   int64
	ComputeNS int64  // nanoseconds: the durations of all operators
	PlainPeak int64  // bytes in use at worst when no tensor is moved
	Source    string // SourceRecorded or SourceShapes
	Host      string
	PID       int64
	Rank      int64 // of WorldSize processes
	LocalRank int64 // among those of the host
	WorldSize int64
	Command   string // the command line that was recorded
}
