// Package exact decides whether buffers of known life fit in a given height: a depth-first search that is complete.
//
// The layout grows upwards. For each section of time the search keeps a floor: all buffers not yet placed over that
// section lie above it. In a valley, where the floor is lower than its neighbours, either a buffer lies on the floor or space is
// wasted. The search examines the corners of all valleys and branches at one with few choices, where searches have failed often. A
// choice is a buffer that fits the corner, or to leave the corner empty, which raises the floor to the next height that a buffer could
// have. The tree stays small because:
//
//   - a floor is raised to the least offset that any buffer over it can still have, and the buffers left must fit between floor and
//     capacity: where the load equals the capacity, every choice is forced or fails;
//   - parts that share no buffer any more are searched separately, so the failure of one part is not repeated for every
//     layout of another;
//   - a state, which is the floors and the buffers left, is not searched again once it has failed, in whatever order it is reached;
//   - of equal buffers only one is tried, and a corner is left empty only if no buffer that fits it could be moved down into it.
//
// The search looks for a layout in which no buffer can be moved down. One exists whenever any layout does.
package exact

import "fmt"

// Instance is a set of buffers, stored as columns. Buffer i lives in the sections [Lo[i], Hi[i]) of [0, Sections). All buffers of a
// section conflict.
type Instance struct {
	Lo, Hi   []int32
	Size     []int64 // units, positive
	Sections int
}

// Outcome is the result of an attempt.
type Outcome int8

const (
	Stopped Outcome = iota // the attempt ended early
	Fits                   // a layout was found
	Fails                  // no layout exists
)

// String returns a word for the outcome.
func (o Outcome) String() string {
	switch o {
	case Stopped:
		return "stopped"
	case Fits:
		return "fits"
	case Fails:
		return "fails"
	}
	return fmt.Sprintf("Outcome(%d)", int8(o))
}

// Preference decides between corners with equally few choices.
type Preference int8

const (
	Tightest Preference = iota // the least spare room below the capacity
	Lowest
	Highest
	Preferences // the number of preferences
)

// Attempt is the capacity, the order and the limits of one search.
type Attempt struct {
	Capacity int64   // units; above [MaxCapacity] the outcome is Stopped
	Rank     []int32 // of the buffers that fit a corner, the one of highest rank is tried first
	Level    bool    // buffers whose top is level with the floor beside them are tried before all others
	Prefer   Preference
	Weighted bool        // corners of sections where attempts have often failed come first
	Nodes    int64       // the search stops after this many nodes
	Stop     func() bool // or when this returns true; it is called now and then
}

// Try searches. For later attempts it remembers the states that fail, and the sections where they do.
func (s *Search) Try(a Attempt) Outcome {
	s.attempt = a
	s.nodes, s.work = 0, 0
	if a.Capacity > MaxCapacity {
		return Stopped
	}
	s.begin()
	if !s.settle() {
		return Fails
	}
	return s.parts(0, int32(s.in.Sections))
}

// Offset returns the offset of a buffer in the layout of the last attempt, in units. It is valid when the outcome was Fits.
func (s *Search) Offset(i int) int64 { return s.offset[i] }

// Nodes returns how many choices the last attempt made.
func (s *Search) Nodes() int64 { return s.nodes }

// Work returns how many buffers the last attempt visited to raise floors. Its time is proportional to that.
func (s *Search) Work() int64 { return s.work }

// Forget drops what attempts have learned.
func (s *Search) Forget() {
	s.failed = memory{}
	for t := range s.weight {
		s.weight[t] = 1
	}
}
