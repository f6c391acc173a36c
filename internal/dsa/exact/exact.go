// Package exact decides whether buffers of known life fit in a given height: a depth-first search that is complete.
//
// The layout grows upwards. For each section of time the search keeps a floor, which everything not yet placed over that
// section stays above. Where the floor is lowest, between higher neighbours, something must lie on it, or there is waste: the search
// looks at the corners of all such valleys and branches at the one that leaves the fewest choices. A choice is a buffer that
// fits the corner, or that nothing lies there and the floor rises to the next height that anything could have. What
// keeps the tree small:
//
//   - a floor is raised to the least offset that any buffer over it can still have, and the room between floor and capacity must
//     hold what is left: where the load is as high as the capacity, every choice is forced or fails;
//   - buffers that share no section any more are searched apart, so that one part's failure is not tried again for every
//     layout of another;
//   - a state, the floors and the buffers left, that has failed is not searched twice, in whichever order it was reached;
//   - of equal buffers one is tried, and a corner is left empty only when nothing that fits there would then fit below the
//     next.
//
// A search looks for a layout in which nothing can be moved down, which exists whenever any layout does.
package exact

import "fmt"

// Instance is a set of buffers, one slice a column. Buffer i lives in the sections [Lo[i], Hi[i]), and each section of
// [0, Sections) is a moment: all buffers of one section conflict.
type Instance struct {
	Lo, Hi   []int32
	Size     []int64 // units, positive
	Sections int
}

// Outcome is what an attempt came to.
type Outcome int8

const (
	Stopped Outcome = iota // neither is known
	Fits                   // a layout was found
	Fails                  // there is none
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

// Preference is which of several corners with equally few choices is taken.
type Preference int8

const (
	Tightest Preference = iota // the least room to spare between what is left and the capacity
	Lowest
	Highest
	Preferences // how many there are
)

// Attempt is one search: how high, in what order, for how long.
type Attempt struct {
	Capacity int64   // units; beyond [MaxCapacity] nothing is searched
	Rank     []int32 // of the buffers that fit a corner the one of highest rank is tried first
	Level    bool    // but those before all whose top is level with the floor beside them
	Prefer   Preference
	Nodes    int64       // the search is stopped after so many
	Stop     func() bool // or when this says so, which is asked now and then
}

// Try searches. What it learns of states that fail is kept for the attempts that follow.
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

// Offset returns where the last attempt put a buffer, in units. It is valid when that attempt's outcome was Fits.
func (s *Search) Offset(i int) int64 { return s.offset[i] }

// Nodes returns how many choices the last attempt made.
func (s *Search) Nodes() int64 { return s.nodes }

// Work returns how many buffers the last attempt looked at to raise floors: what its time goes with.
func (s *Search) Work() int64 { return s.work }

// Forget drops what was learned of states that fail.
func (s *Search) Forget() { s.failed = memory{} }
