package draft

import (
	"slices"
	"sort"
	"time"

	"gm/internal/swap"
)

// Problem is a graph and limits, and what policies need to know of them.
type Problem struct {
	Graph    *swap.Graph
	Limits   swap.Limits
	Readers  swap.Lists
	Writers  swap.Lists
	Backward int32           // the first operator behind the forward pass
	Begin    []time.Duration // of each operator when nothing waits, not even for the program, and the end of the last
	Paced    []time.Duration // the same at the program's pace
	Plain    []int64         // bytes in use at each operator when nothing is moved
	Remake   *Remake
	Compiler Compiler
	spare    spare
}

// spare is memory that is reused.
type spare struct {
	order                    []Trip
	heap                     deadlines
	want                     []int32
	flags                    []bool
	byTensor, byRank, byNeed Buckets
}

func New(g *swap.Graph, limits swap.Limits) *Problem {
	p := &Problem{Graph: g, Limits: limits, Readers: g.Readers(), Writers: g.Writers(), Plain: g.Plain()}
	p.Remake = newRemake(g, &p.Writers)
	p.Begin, p.Paced = make([]time.Duration, len(g.Ops)+1), make([]time.Duration, len(g.Ops)+1)
	program := time.Duration(0)
	for i, o := range g.Ops {
		program += o.Launch
		p.Begin[i+1], p.Paced[i+1] = p.Begin[i]+o.Duration, max(p.Paced[i]+o.Duration, program)
	}
	p.Backward = int32(sort.Search(len(g.Ops), func(i int) bool { return g.Ops[i].Phase != swap.Forward }))
	return p
}

func (p *Problem) Ops() int32 { return int32(len(p.Graph.Ops)) }

// Gap is a stretch of operators, those between After and Before, that do not use a tensor.
type Gap struct {
	Tensor        int32
	After, Before int32
}

// Empty reports whether there is no operator in the gap.
func (x Gap) Empty() bool { return x.Before-x.After < 2 }

// mainGap returns the gap of a tensor between its last use in the forward pass and its first one behind it.
func (p *Problem) mainGap(t int32) (Gap, bool) {
	tensor := &p.Graph.Tensors[t]
	i := sort.Search(len(tensor.Uses), func(i int) bool { return tensor.Uses[i] >= p.Backward })
	if i == len(tensor.Uses) || tensor.Made >= p.Backward {
		return Gap{}, false
	}
	x := Gap{t, tensor.Made, tensor.Uses[i]}
	if i > 0 {
		x.After = tensor.Uses[i-1]
	}
	return x, !x.Empty()
}

// MainGaps returns the main gaps of all tensors that have one, in the order in which the tensors are made.
func (p *Problem) MainGaps() []Gap {
	var gaps []Gap
	for t := range p.Graph.Tensors {
		if x, ok := p.mainGap(int32(t)); ok {
			gaps = append(gaps, x)
		}
	}
	slices.SortStableFunc(gaps, func(a, b Gap) int { return int(p.Graph.Tensors[a.Tensor].Made - p.Graph.Tensors[b.Tensor].Made) })
	return gaps
}

// AtLeast returns the bytes that are in use at an operator when some tensors are there beside its own.
func (p *Problem) AtLeast(op int32, others []int32) int64 {
	least := p.Graph.Ops[op].Base
	own := slices.Concat(p.Readers.Of(op), p.Writers.Of(op), others)
	slices.Sort(own)
	for _, t := range slices.Compact(own) {
		least += p.Graph.Tensors[t].Bytes
	}
	return least
}

// FirstAt returns the first operator that begins at a time or later, or the number of operators.
func FirstAt(begin []time.Duration, at time.Duration) int32 {
	first, end := 0, len(begin)-1
	for first < end {
		if middle := (first + end) / 2; begin[middle] < at {
			first = middle + 1
		} else {
			end = middle
		}
	}
	return int32(first)
}

// Plus adds bytes to those in use at the operators from first to the one before end.
func Plus(usage []int64, first, end int32, bytes int64) {
	for i := first; i < end; i++ {
		usage[i] += bytes
	}
}

// Over returns the operator that exceeds a limit most, and by how much; -1 and 0 if none does.
func Over(usage []int64, limit int64) (op int32, bytes int64) {
	op = -1
	for i, used := range usage {
		if used-limit > bytes {
			op, bytes = int32(i), used-limit
		}
	}
	return op, bytes
}

// Features reports whether Dymem copies what an operator of a type reads. Other layers' tensors are few and small in its networks.
func Features(kind swap.OpType) bool {
	return kind == swap.Conv || kind == swap.Pool || kind == swap.Activation || kind == swap.Norm
}
