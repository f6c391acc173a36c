package policy

import (
	"slices"
	"sort"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/simulate"
)

// problem is a graph and limits, and what policies ask of them.
type problem struct {
	graph    *swap.Graph
	limits   swap.Limits
	machine  *simulate.Machine
	readers  swap.Lists
	writers  swap.Lists
	backward int32           // the first operator behind the forward pass
	begin    []time.Duration // of each operator when nothing waits, and the end of the last
	plain    []int64         // bytes in use at each operator when nothing is moved
	remake   *remake
	compiler compiler
	work     workspace
	family   *family // auto's, if it was asked
}

func newProblem(g *swap.Graph, limits swap.Limits) *problem {
	p := &problem{graph: g, limits: limits, machine: simulate.New(g, limits.Link), readers: g.Readers(), writers: g.Writers(), plain: g.Plain()}
	p.remake = newRemake(g, &p.writers)
	p.begin = make([]time.Duration, len(g.Ops)+1)
	for i := range g.Ops {
		p.begin[i+1] = p.begin[i] + g.Ops[i].Duration
	}
	p.backward = int32(sort.Search(len(g.Ops), func(i int) bool { return g.Ops[i].Phase != swap.Forward }))
	return p
}

func (p *problem) ops() int32 { return int32(len(p.graph.Ops)) }

// gap is a stretch of operators, those between after and before, that do without a tensor.
type gap struct {
	tensor        int32
	after, before int32
}

// empty says that there is no operator in the gap.
func (x gap) empty() bool { return x.before-x.after < 2 }

// mainGap returns the gap of a tensor between its last use in the forward pass and its first one behind it.
func (p *problem) mainGap(t int32) (gap, bool) {
	tensor := &p.graph.Tensors[t]
	i := sort.Search(len(tensor.Uses), func(i int) bool { return tensor.Uses[i] >= p.backward })
	if i == len(tensor.Uses) || tensor.Made >= p.backward {
		return gap{}, false
	}
	x := gap{t, tensor.Made, tensor.Uses[i]}
	if i > 0 {
		x.after = tensor.Uses[i-1]
	}
	return x, !x.empty()
}

// mainGaps returns those of all tensors that have one, in the order in which they are made.
func (p *problem) mainGaps() []gap {
	var gaps []gap
	for t := range p.graph.Tensors {
		if x, ok := p.mainGap(int32(t)); ok {
			gaps = append(gaps, x)
		}
	}
	slices.SortStableFunc(gaps, func(a, b gap) int { return int(p.graph.Tensors[a.tensor].Made - p.graph.Tensors[b.tensor].Made) })
	return gaps
}

// atLeast returns the bytes that are in use at an operator when some tensors are there beside its own.
func (p *problem) atLeast(op int32, others []int32) int64 {
	least := p.graph.Ops[op].Base
	own := slices.Concat(p.readers.Of(op), p.writers.Of(op), others)
	slices.Sort(own)
	for _, t := range slices.Compact(own) {
		least += p.graph.Tensors[t].Bytes
	}
	return least
}

// firstAt returns the first operator that begins at a time or later, or the number of operators.
func firstAt(begin []time.Duration, at time.Duration) int32 {
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

// plus adds bytes to those in use at the operators from first to the one before end.
func plus(usage []int64, first, end int32, bytes int64) {
	for i := first; i < end; i++ {
		usage[i] += bytes
	}
}

// over returns the operator that takes most beyond a limit, and by how much; none and 0 or less where each keeps to it.
func over(usage []int64, limit int64) (op int32, bytes int64) {
	op = -1
	for i, used := range usage {
		if used-limit > bytes {
			op, bytes = int32(i), used-limit
		}
	}
	return op, bytes
}
