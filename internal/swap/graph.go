package swap

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Graph is one step of training.
type Graph struct {
	Ops     []Op
	Tensors []Tensor // what may be moved, and no more
	Name    string   // of the model or the program
	Device  string   // the product's name that Duration holds for

	States   []string // what operators read and change beside the tensors: parameters, random generators. Names
	Complete bool     // all memory that the step takes is a tensor: Base is what lasts and what the operator alone takes
	Handling Handling // what actions take the program
	Origin   []int32  // by operator, its number in the graph that this one is another order of; nil if it is none
}

// Op is an operator, or a stretch of the compute stream between two points at which actions can be carried out.
type Op struct {
	Name     string        // path of the module and name of the operator
	Type     OpType        //
	Phase    Phase         //
	Layer    int32         // the layer that it belongs to, in its forward and in its backward pass; -1 for none
	Duration time.Duration // on the compute stream with nothing beside it
	Launch   time.Duration // that the program takes for it: it ends no earlier than it is launched
	Base     int64         // bytes in use at its worst moment beside the graph's tensors: parameters, gradients, temporaries

	// What keeps its place among the others, beside tensors: two operators, one of which changes a state that the other reads or changes,
	// keep their order. Numbers of states, ascending.
	Reads, Changes []int32

	Options []Option // other ways to run it
}

// Handling is how long the program takes for an action of each kind, in which it launches no operators. What recomputing takes is the tensor's.
type Handling [Settle + 1]time.Duration

// Option is a way to run an operator: with a workspace, in another time. The algorithms of a convolution are some.
type Option struct {
	Name      string
	Workspace int64         // bytes beside Base while it runs
	Duration  time.Duration // in place of the operator's
}

// Tensor is memory that an operator writes once and others read: a storage, not a view.
type Tensor struct {
	Name  string
	Bytes int64
	Made  int32   // the operator that writes it
	Uses  []int32 // the operators after Made that read it or in which the program holds on to it, ascending; not empty
	Layer int32   // -1 for none
	Role  Role

	// How it is recomputed: by an operator that takes Recompute and reads From, which must be on the device then. No time: it cannot be.
	// If Row is not 0 the operator works on each row of Row bytes independently, and a part of the rows takes that part of the time.
	Recompute time.Duration
	From      []int32
	Row       int64
	Relaunch  time.Duration // that recomputing it takes the program
	Scratch   int64         // bytes that recomputing it takes beside it and what it is recomputed from, and frees again

	Changed []int32 // those of Uses that change its contents, ascending
	Over    []int32 // the tensors that it may be written over: Made is one of their uses, and takes no memory for it if it is the last
}

// Last returns the last operator that reads t. Its memory is free from the one after it on.
func (t *Tensor) Last() int32 { return t.Uses[len(t.Uses)-1] }

// Copyable reports whether this many of the first bytes can be copied alone: all of them, or whole rows.
func (t *Tensor) Copyable(bytes int64) bool {
	return bytes == t.Bytes || t.Row > 0 && 0 < bytes && bytes < t.Bytes && bytes%t.Row == 0
}

// Phase is the part of a step that an operator belongs to.
type Phase uint8

// The phases, in the order in which they come.
const (
	Forward Phase = iota
	Backward
	Update // of the parameters, by the optimizer
)

// OpType says what an operator does, as far as policies look at it.
type OpType uint8

// The types of operators.
const (
	Other OpType = iota
	Conv
	Pool
	Activation
	Norm
	Linear
	Attention
	Dropout
	Softmax
	Join // of branches: an addition or a concatenation
)

// Role says what a tensor is to its layer (MEMO, section 4.1).
type Role uint8

// The roles of tensors.
const (
	Inner        Role = iota // any but these
	LayerInput               // the input of a layer
	AttentionOut             // the output of its attention
)

// Validate returns an error for a graph that is none: each policy and the simulator take a valid one for granted.
func (g *Graph) Validate() error {
	var took time.Duration
	for i, o := range g.Ops {
		took += min(o.Duration, maxDuration) + min(o.Launch, maxDuration)
		switch {
		case o.Duration < 0 || took > maxDuration:
			return fmt.Errorf("operator %d: duration of %v", i, o.Duration)
		case o.Launch < 0:
			return fmt.Errorf("operator %d: launched in %v", i, o.Launch)
		case o.Base < 0 || o.Base > maxBytes:
			return fmt.Errorf("operator %d: %d bytes beside the tensors", i, o.Base)
		case o.Phase > Update || i > 0 && o.Phase < g.Ops[i-1].Phase:
			return fmt.Errorf("operator %d: phase %d is out of order", i, uint8(o.Phase))
		case o.Layer < -1:
			return fmt.Errorf("operator %d: layer %d", i, o.Layer)
		case int(o.Type) >= len(opTypeNames):
			return fmt.Errorf("operator %d: there is no type %d", i, uint8(o.Type))
		}
		if err := g.validateRest(&o); err != nil {
			return fmt.Errorf("operator %d: %w", i, err)
		}
	}
	if slices.Min(g.Handling[:]) < 0 || slices.Max(g.Handling[:]) > maxHandling {
		return fmt.Errorf("actions take the program %v", g.Handling)
	}
	if slices.Contains(g.States, "") {
		return errors.New("a state has no name")
	}
	if g.Origin != nil && len(g.Origin) != len(g.Ops) {
		return fmt.Errorf("origins of %d operators, of %d", len(g.Origin), len(g.Ops))
	}
	var bytes, moved int64
	var again time.Duration
	for i := range g.Tensors {
		t := &g.Tensors[i]
		if err := g.validateTensor(t); err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		bytes, took = bytes+t.Bytes, took+t.Recompute
		if bytes > maxTotal || took > maxDuration {
			return fmt.Errorf("tensor %d: %d bytes and %v in all, so far", i, bytes, took)
		}
		uses := int64(len(t.Uses))
		each := t.Recompute + t.Relaunch
		if uses > (maxMoved-moved)/t.Bytes || each > 0 && uses > int64((maxAgain-again)/each) {
			return fmt.Errorf("tensor %d: %d bytes that take %v, used %d times: with the others more than %d bytes or %v", i, t.Bytes, each, uses, int64(maxMoved), maxAgain)
		}
		moved, again = moved+uses*t.Bytes, again+time.Duration(uses)*each
	}
	return nil
}

const (
	maxBytes    = 1 << 50
	maxTotal    = 1 << 52
	maxMoved    = 1 << 60 // of all tensors, once for each use: what copies add up to does not overflow
	maxAgain    = time.Duration(1 << 60)
	maxDuration = 1000 * time.Hour
	maxHandling = time.Minute
)

// validateRest checks the states and options of an operator.
func (g *Graph) validateRest(o *Op) error {
	for _, states := range [][]int32{o.Reads, o.Changes} {
		for i, s := range states {
			if s < 0 || int(s) >= len(g.States) || i > 0 && s <= states[i-1] {
				return fmt.Errorf("states %v of %d are not ascending", states, len(g.States))
			}
		}
	}
	for _, option := range o.Options {
		if option.Name == "" || option.Workspace < 0 || option.Workspace > maxBytes || option.Duration < 0 || option.Duration > maxDuration {
			return fmt.Errorf("option %q: workspace of %d bytes, duration of %v", option.Name, option.Workspace, option.Duration)
		}
	}
	return nil
}

func (g *Graph) validateTensor(t *Tensor) error {
	if t.Bytes <= 0 || t.Bytes > maxBytes {
		return fmt.Errorf("size of %d bytes", t.Bytes)
	}
	if t.Made < 0 || len(t.Uses) == 0 || int(t.Last()) >= len(g.Ops) {
		return fmt.Errorf("made at %d and used at %v of %d operators", t.Made, t.Uses, len(g.Ops))
	}
	for before, i := t.Made, 0; i < len(t.Uses); i++ {
		if t.Uses[i] < before || i > 0 && t.Uses[i] == before {
			return fmt.Errorf("uses %v are not in order after %d", t.Uses, t.Made)
		}
		before = t.Uses[i]
	}
	if t.Layer < -1 || t.Recompute < 0 || t.Recompute > maxDuration || t.Relaunch < 0 || t.Relaunch > maxDuration {
		return fmt.Errorf("layer %d, recomputed in %v, launched in %v", t.Layer, t.Recompute, t.Relaunch)
	}
	if t.Scratch < 0 || t.Scratch > maxBytes {
		return fmt.Errorf("recomputed with %d bytes beside it", t.Scratch)
	}
	if int(t.Role) >= len(roleNames) {
		return fmt.Errorf("there is no role %d", uint8(t.Role))
	}
	if t.Row < 0 || t.Row > 0 && t.Bytes%t.Row != 0 {
		return fmt.Errorf("rows of %d bytes in %d", t.Row, t.Bytes)
	}
	for _, from := range t.From {
		if from < 0 || int(from) >= len(g.Tensors) || g.Tensors[from].Made > t.Made || &g.Tensors[from] == t {
			return fmt.Errorf("recomputed from tensor %d, which is not there then", from)
		}
	}
	for _, over := range t.Over {
		if over < 0 || int(over) >= len(g.Tensors) || &g.Tensors[over] == t || !g.Tensors[over].usedAt(t.Made) {
			return fmt.Errorf("in the place of tensor %d, which operator %d does not use", over, t.Made)
		}
	}
	for _, op := range t.Changed {
		if !t.usedAt(op) {
			return fmt.Errorf("changed by operator %d, which does not use it", op)
		}
	}
	return nil
}

func (t *Tensor) usedAt(op int32) bool {
	_, found := slices.BinarySearch(t.Uses, op)
	return found
}

// Compute returns how long the step takes when nothing waits.
func (g *Graph) Compute() time.Duration {
	var sum time.Duration
	for _, o := range g.Ops {
		sum += o.Duration
	}
	return sum
}

// Least returns the bytes without which some operator cannot run.
func (g *Graph) Least() int64 {
	least := int64(0)
	for _, bytes := range g.Alone() {
		least = max(least, bytes)
	}
	return least
}

// Alone returns, for each operator, the bytes without which it cannot run: what it reads and writes, and takes besides.
func (g *Graph) Alone() []int64 {
	used := make([]int64, len(g.Ops))
	for i := range g.Ops {
		used[i] = g.Ops[i].Base
	}
	for i := range g.Tensors {
		t := &g.Tensors[i]
		used[t.Made] += t.Bytes
		for _, op := range t.Uses {
			if op != t.Made {
				used[op] += t.Bytes
			}
		}
	}
	return used
}

// Plain returns, for each operator, the bytes in use when nothing is moved.
func (g *Graph) Plain() []int64 {
	delta := make([]int64, len(g.Ops)+1)
	for i := range g.Tensors {
		t := &g.Tensors[i]
		delta[t.Made] += t.Bytes
		delta[t.Last()+1] -= t.Bytes
	}
	used, live := make([]int64, len(g.Ops)), int64(0)
	for i := range g.Ops {
		live += delta[i]
		used[i] = g.Ops[i].Base + live
	}
	return used
}
