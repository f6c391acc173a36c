package policy

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"gm/internal/swap"
)

// boundOps is how many operators, those that are most over the limit, bounds are taken at.
const boundOps = 64

// LowerBound returns a time that no schedule of g's steps within the limits is faster than, and false if there is no schedule within them.
// The link must not take longer for each byte of a large copy than of a small one.
//
// At an operator that exceeds the limit, the excess must be away. What is away was either copied to the host before, after it was
// written, or is recomputed behind it; what was copied has to come back behind it. The bound is the least over all ways to divide the
// bytes in two, the greatest over operators.
func LowerBound(g *swap.Graph, limits swap.Limits) (time.Duration, bool) {
	p := newProblem(g, limits)
	if g.Least() > limits.Device {
		return 0, false
	}
	bound := p.Begin[p.Ops()]
	for _, op := range p.tightest() {
		b := p.boundAt(op)
		least, ok := b.least()
		if !ok {
			return 0, false
		}
		bound = max(bound, least)
	}
	return bound, true
}

// fewOps is how many operators bounds for schedules of one kind are taken at.
const fewOps = 16

// mayCopy reports whether a schedule within the limit that recomputes nothing may take no longer than a time.
func (p *problem) mayCopy(most time.Duration) bool {
	return p.may(func(op int32) bool {
		b := p.boundAt(op)
		b.again = curve{}
		least, ok := b.least()
		return ok && least <= most
	})
}

// mayRecompute reports the same of a schedule that copies nothing.
func (p *problem) mayRecompute(most time.Duration) bool {
	return p.may(func(op int32) bool {
		all, _ := p.absentAt(op)
		return cheapest(all, p.Plain[op]-p.Limits.Device) <= float64(most-p.Begin[p.Ops()])
	})
}

// may reports whether all of the operators that are most over the limit allow a thing.
func (p *problem) may(allows func(op int32) bool) bool {
	ops := p.tightest()
	return !slices.ContainsFunc(ops[:min(len(ops), fewOps)], func(op int32) bool { return !allows(op) })
}

// cheapest returns how many ns it takes at least to compute this many bytes of some tensors again.
func cheapest(all []absent, bytes int64) float64 {
	slices.SortFunc(all, func(x, y absent) int { return cmp.Compare(x.again, y.again) })
	took := 0.0
	for _, x := range all {
		if bytes <= 0 {
			return took
		}
		took += x.again * float64(min(bytes, x.bytes))
		bytes -= x.bytes
	}
	if bytes > 0 {
		return math.Inf(1)
	}
	return took
}

// tightest lists the operators that are over the limit, no less than their neighbours, and more than one of them: the most bytes first.
func (p *problem) tightest() []int32 {
	var ops []int32
	at := func(op int32) int64 {
		if op < 0 || op >= p.Ops() {
			return 0
		}
		return p.Plain[op]
	}
	for op := range p.Ops() {
		before, used, behind := at(op-1), at(op), at(op+1)
		if used > p.Limits.Device && used >= max(before, behind) && used > min(before, behind) {
			ops = append(ops, op)
		}
	}
	slices.SortFunc(ops, func(a, b int32) int { return cmp.Or(cmp.Compare(p.Plain[b], p.Plain[a]), cmp.Compare(a, b)) })
	return ops[:min(len(ops), boundOps)]
}

// bound is a bound at one operator.
type bound struct {
	before, took, behind float64 // ns of operators before it, of itself, and behind it
	away                 int64   // bytes
	host                 int64
	again                curve // ns that it takes to compute bytes again
	out                  curve // ns from the start of the step until bytes are on the host
	in                   curve // ns from the operator until the end of the step if bytes come back
	slack                float64
}

// curve is a function that grows with bytes: linear between points, with steps up.
type curve struct {
	bytes []int64 // up to which each piece goes
	start []float64
	slope []float64
}

// add adds a piece.
func (c *curve) add(bytes int64, start, slope float64) {
	if len(c.bytes) > 0 {
		bytes += c.bytes[len(c.bytes)-1]
	}
	c.bytes, c.start, c.slope = append(c.bytes, bytes), append(c.start, start), append(c.slope, slope)
}

// at returns the value at some bytes: that of the first piece that ends there or behind; 0 at none, and +Inf beyond the last.
func (c *curve) at(bytes int64) float64 {
	if bytes <= 0 {
		return 0
	}
	i := sort.Search(len(c.bytes), func(i int) bool { return c.bytes[i] >= bytes })
	if i == len(c.bytes) {
		return math.Inf(1)
	}
	from := int64(0)
	if i > 0 {
		from = c.bytes[i-1]
	}
	return c.start[i] + c.slope[i]*float64(bytes-from)
}

// absent is a tensor that may be away at an operator.
type absent struct {
	bytes int64
	made  float64 // ns from the start of the step until it is written
	need  float64 // ns of operators from the next one that uses it on
	again float64 // ns for a byte of it
}

func (p *problem) boundAt(op int32) *bound {
	total := float64(p.Begin[p.Ops()])
	b := &bound{
		before: float64(p.Begin[op]), took: float64(p.Graph.Ops[op].Duration), behind: total - float64(p.Begin[op+1]),
		away: p.Plain[op] - p.Limits.Device, host: p.Limits.Host,
	}
	all, largest := p.absentAt(op)
	b.slack = float64(len(all)) + 2 // times are cut to whole ns
	slices.SortStableFunc(all, func(x, y absent) int { return cmp.Compare(x.made, y.made) })
	b.out.lane(all, rate(p.Limits.Link.OutTime, largest), func(x *absent) float64 { return x.made })
	slices.SortStableFunc(all, func(x, y absent) int { return cmp.Compare(x.need, y.need) })
	b.in.lane(all, rate(p.Limits.Link.InTime, largest), func(x *absent) float64 { return x.need })
	slices.SortStableFunc(all, func(x, y absent) int { return cmp.Compare(x.again, y.again) })
	took := 0.0
	for _, x := range all {
		if !math.IsInf(x.again, 1) {
			b.again.add(x.bytes, took, x.again)
			took += x.again * float64(x.bytes)
		}
	}
	return b
}

// absentAt returns the tensors that may be away at an operator, and the bytes of the largest.
func (p *problem) absentAt(op int32) (all []absent, largest int64) {
	total := float64(p.Begin[p.Ops()])
	for i := range p.Graph.Tensors {
		t := &p.Graph.Tensors[i]
		next := sort.Search(len(t.Uses), func(i int) bool { return t.Uses[i] >= op })
		if t.Made >= op || next == len(t.Uses) || t.Uses[next] == op {
			continue
		}
		x := absent{t.Bytes, float64(p.Begin[t.Made+1]), total - float64(p.Begin[t.Uses[next]]), math.Inf(1)}
		if t.Recompute > 0 {
			x.again = float64(t.Recompute) / float64(t.Bytes)
		}
		all = append(all, x)
		largest = max(largest, t.Bytes)
	}
	return all, largest
}

// rate returns the time of copies in ns a byte, where the largest copy has this size in bytes.
func rate(took func(int64) time.Duration, largest int64) float64 {
	if largest == 0 {
		return 0
	}
	return max(0, float64(took(largest)-1)) / float64(largest)
}

// lane makes the curve of a lane of copies which each can begin at a time. They are in the order of that.
func (c *curve) lane(all []absent, rate float64, from func(*absent) float64) {
	end := 0.0
	for i := range all {
		begin := max(end, from(&all[i]))
		c.add(all[i].bytes, begin, rate)
		end = begin + rate*float64(all[i].bytes)
	}
}

// boundParts is in how many parts of the same size the bytes that are away are looked at. The bound is less than what it could be by what
// one of them takes.
const boundParts = 512

// least returns the least time of a step over all ways to divide what is away into copied bytes and others.
func (b *bound) least() (time.Duration, bool) {
	least := math.Inf(1)
	part := func(i int64) int64 { return int64(float64(b.away) * float64(i) / boundParts) }
	for i := range int64(boundParts) {
		copied, most := part(i), part(i+1) // at least and at most
		if i == boundParts-1 {
			most = b.away
		}
		if copied > b.host {
			break
		}
		out, in, again := b.out.at(copied), b.in.at(copied), b.again.at(b.away-min(most, b.host))
		least = min(least, max(b.before, out)+b.took+max(b.behind+again, in))
	}
	return time.Duration(max(0, least-b.slack)), !math.IsInf(least, 1)
}
