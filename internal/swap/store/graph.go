package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gm/formats/graph"
	"gm/internal/swap"
)

// Graph is a graph with what its file says beside it.
type Graph struct {
	*swap.Graph
	Recorded []Recorded // by tensor; nil when nothing of it is known
	Meta     graph.Meta
	Digest   string // SHA-256 of its file, in hex
	File     string // what the file that it was read from is called in errors
}

// Recorded is what the program that a graph was recorded from knows of a tensor.
type Recorded struct {
	Saved   int32 // its number among the tensors that autograd saved, from 0; -1 when it is none of them
	Version int64 // its version counter when it was saved
	DType   string
	Shape   string
}

// notRecorded is what is known of a tensor when nothing is.
var notRecorded = Recorded{Saved: -1}

// ReadGraph reads a graph from the named file, or from standard input for "-" or "". It is a valid one, and its metadata agrees with it.
func ReadGraph(name string) (g *Graph, err error) {
	r, err := graph.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return DecodeGraph(r)
}

// DecodeGraph reads a graph to its end, as [ReadGraph] does. It leaves the reader open.
func DecodeGraph(r *graph.Reader) (*Graph, error) {
	b := graphBuilder{
		text: r.Strings().Text, states: map[int32]int32{},
		graph: &swap.Graph{Name: r.Meta().Name, Device: r.Meta().Device, Complete: r.Meta().Complete},
	}
	row := 0
	err := graph.Each(r, func(next *graph.Row) error {
		if err := b.add(next); err != nil {
			return r.Wrap(fmt.Errorf("row %d: %w", row, err))
		}
		row++
		return nil
	})
	if err != nil {
		return nil, err
	}
	g := &Graph{Graph: b.graph, Recorded: b.finish(), Meta: r.Meta(), File: r.Name()}
	if err := g.check(); err != nil {
		return nil, r.Wrap(err)
	}
	if g.Digest, err = r.Digest(); err != nil {
		return nil, err
	}
	return g, nil
}

// check checks what was read as a whole.
func (g *Graph) check() error {
	if err := g.Validate(); err != nil {
		return err
	}
	said, is := g.Meta, g.describe()
	switch {
	case said.ComputeNS != 0 && said.ComputeNS != is.ComputeNS:
		return fmt.Errorf("metadata: operators that take %d ns, those of the rows take %d", said.ComputeNS, is.ComputeNS)
	case said.PlainPeak != 0 && said.PlainPeak != is.PlainPeak:
		return fmt.Errorf("metadata: peak of %d bytes, that of the rows is %d", said.PlainPeak, is.PlainPeak)
	}
	return nil
}

// describe returns the metadata with what follows from the graph.
func (g *Graph) describe() graph.Meta {
	m := g.Meta
	m.Name, m.Device, m.Complete = g.Name, g.Device, g.Complete
	m.Operators, m.Tensors = int64(len(g.Ops)), int64(len(g.Tensors))
	m.ComputeNS, m.PlainPeak = int64(g.Compute()), 0
	if len(g.Ops) > 0 {
		m.PlainPeak = slices.Max(g.Plain())
	}
	return m
}

// graphBuilder makes a graph of rows that follow the rules of their format.
type graphBuilder struct {
	text     func(code int32) string
	graph    *swap.Graph
	states   map[int32]int32 // their numbers, by the codes of their names
	recorded []Recorded      // by tensor
	known    bool            // of any tensor
	ids      []int32         // the tensors' numbers, in the order in which they were read
	places   []int32         // their places in that order, by number
}

func (b *graphBuilder) add(r *graph.Row) error {
	switch r.Kind {
	case graph.KindOp:
		return b.addOp(r)
	case graph.KindTensor:
		return b.addTensor(r)
	case graph.KindUse:
		t := &b.graph.Tensors[b.places[r.Tensor]]
		t.Uses = append(t.Uses, int32(r.Operator))
	case graph.KindFrom:
		t := &b.graph.Tensors[b.places[r.Tensor]]
		t.From = append(t.From, int32(r.Input))
	case graph.KindInPlace:
		t := &b.graph.Tensors[b.places[r.Tensor]]
		t.Over = append(t.Over, int32(r.Input))
	case graph.KindReads:
		b.lastOp().Reads = b.addState(b.lastOp().Reads, r.Name)
	case graph.KindChanges:
		if r.Tensor < 0 {
			b.lastOp().Changes = b.addState(b.lastOp().Changes, r.Name)
			break
		}
		if t := &b.graph.Tensors[b.places[r.Tensor]]; !slices.Contains(t.Changed, int32(r.Operator)) {
			t.Changed = append(t.Changed, int32(r.Operator))
		}
	case graph.KindOption:
		o := swap.Option{Name: b.text(r.Name), Workspace: r.Bytes, Duration: time.Duration(r.DurationNS)}
		b.lastOp().Options = append(b.lastOp().Options, o)
	}
	return nil
}

func (b *graphBuilder) lastOp() *swap.Op { return &b.graph.Ops[len(b.graph.Ops)-1] }

// addState adds the state of a name to a list, unless it is there.
func (b *graphBuilder) addState(list []int32, name int32) []int32 {
	state, ok := b.states[name]
	if !ok {
		state = int32(len(b.graph.States))
		b.states[name] = state
		b.graph.States = append(b.graph.States, b.text(name))
	}
	at, found := slices.BinarySearch(list, state)
	if found {
		return list
	}
	return slices.Insert(list, at, state)
}

func (b *graphBuilder) addOp(r *graph.Row) error {
	typ, ok := swap.ParseOpType(b.text(r.Type))
	if !ok {
		return fmt.Errorf("unknown type %q", b.text(r.Type))
	}
	b.graph.Ops = append(b.graph.Ops, swap.Op{
		Name: b.text(r.Name), Type: typ, Phase: swap.Phase(r.Phase), Layer: r.Layer, Duration: time.Duration(r.DurationNS), Base: r.BaseBytes,
	})
	if r.Origin >= 0 && b.graph.Origin == nil {
		b.graph.Origin = make([]int32, len(b.graph.Ops)-1)
		for i := range b.graph.Origin {
			b.graph.Origin[i] = -1
		}
	}
	if b.graph.Origin != nil {
		b.graph.Origin = append(b.graph.Origin, int32(r.Origin))
	}
	return nil
}

func (b *graphBuilder) addTensor(r *graph.Row) error {
	role, ok := swap.ParseRole(b.text(r.Role))
	if !ok {
		return fmt.Errorf("unknown role %q", b.text(r.Role))
	}
	if n := int(r.Tensor) + 1 - len(b.places); n > 0 {
		b.places = append(b.places, make([]int32, n)...)
	}
	b.places[r.Tensor] = int32(len(b.ids))
	b.ids = append(b.ids, int32(r.Tensor))
	b.graph.Tensors = append(b.graph.Tensors, swap.Tensor{
		Name: b.text(r.Name), Bytes: r.Bytes, Made: int32(r.Operator), Layer: r.Layer, Role: role, Recompute: time.Duration(r.RecomputeNS), Row: r.RowBytes,
		Scratch: r.BaseBytes,
	})
	recorded := Recorded{Saved: r.Saved, Version: r.Version, DType: b.text(r.DType), Shape: b.text(r.Shape)}
	b.recorded = append(b.recorded, recorded)
	b.known = b.known || recorded != notRecorded
	return nil
}

// finish puts the tensors in the order of their numbers, and returns what was recorded of them.
func (b *graphBuilder) finish() []Recorded {
	for i := range b.ids {
		for id := b.ids[i]; id != int32(i); id = b.ids[i] {
			b.ids[i], b.ids[id] = b.ids[id], id
			b.graph.Tensors[i], b.graph.Tensors[id] = b.graph.Tensors[id], b.graph.Tensors[i]
			b.recorded[i], b.recorded[id] = b.recorded[id], b.recorded[i]
		}
	}
	if !b.known {
		return nil
	}
	return b.recorded
}
