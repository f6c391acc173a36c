package policy

import (
	"errors"
	"math"
	"time"

	"gm/internal/swap"
)

// away is a gap in which a tensor is not on the device.
type away struct {
	gap
	bytes int64 // copied to the host; the rest is computed again
}

// workspace is memory that schedules are made in, one after the other.
type workspace struct {
	trips, order         []trip
	heap                 deadlines
	usage, ghosts        []int64
	again, begin, before []time.Duration
	left                 []time.Duration
	want                 []int32
	flags                []bool

	byTensor, byRank, starts, ends, byNeed buckets
}

// realize returns the best schedule that it knows for what is away, which is in the order in which the tensors are made. Memory is given
// back when it is needed, or before where that takes no waiting; copies to the device begin in time to end when they are needed, as far as
// memory allows. Actions are valid until the next call. The error is a *ShortError.
func (p *problem) realize(all []away) ([]swap.Action, error) {
	return p.realizeWithin(all, math.MaxInt64)
}

// errSlow says that a step takes longer than it may.
var errSlow = errors.New("the step takes too long")

// realizeWithin does so too, or returns errSlow where it is plain before the end that the step would take longer than a time.
func (p *problem) realizeWithin(all []away, most time.Duration) ([]swap.Action, error) {
	trips := p.work.trips[:0]
	for _, x := range all {
		trips = append(trips, trip{tensor: x.tensor, bytes: x.bytes, after: x.after, free: x.after + 1, back: x.before, need: x.before})
	}
	p.work.trips = trips
	trips = p.advance(trips)
	p.recomputes(trips)
	usage := p.usage(trips)
	if op, short := over(usage, p.limits.Device); short > 0 {
		return nil, &ShortError{Bytes: short, Op: op}
	}
	trips, less := p.delay(trips, usage)
	p.queue(trips)
	begin := p.pace(trips)
	if begin[p.ops()]-less > most {
		return nil, errSlow
	}
	p.hasten(trips)
	p.hoist(trips, p.usage(trips), begin)
	return p.compile(trips, p.remake.dead), nil
}

// usage returns the bytes in use at each operator if trips end at the need. The ghosts are those of recomputes.
func (p *problem) usage(trips []trip) []int64 {
	usage := zeroed(p.work.usage, int(p.ops())+1)
	p.work.usage = usage
	for i := range trips {
		bytes := p.graph.Tensors[trips[i].tensor].Bytes
		usage[trips[i].free] -= bytes
		usage[trips[i].need] += bytes
	}
	away := int64(0)
	for op, plain := range p.plain {
		away += usage[op]
		usage[op] = plain + away + p.work.ghosts[op]
	}
	return usage[:p.ops()]
}

// recomputes finds the bytes of ghosts before each operator, and how long what is computed again there takes.
func (p *problem) recomputes(trips []trip) {
	ghosts, took := zeroed(p.work.ghosts, int(p.ops())), zeroed(p.work.again, int(p.ops()))
	p.work.ghosts, p.work.again = ghosts, took
	r := &p.compiler.recipe
	p.eachAgain(trips, func(again []int32) {
		op := trips[again[0]].need
		p.remake.begin(r)
		for _, i := range again {
			x := &trips[i]
			t := &p.graph.Tensors[x.tensor]
			p.remake.add(r, x.tensor, op, p.remake.dead)
			took[op] += time.Duration(float64(t.Recompute) * float64(p.rest(x)) / float64(t.Bytes))
		}
		for _, t := range r.ghosts {
			ghosts[op] += p.graph.Tensors[t].Bytes
			took[op] += p.graph.Tensors[t].Recompute
		}
	})
}

// delay lets the trips of what is copied begin only where memory is needed, in the order in which copies end, and drops those that need not
// be made. Usage is the bytes in use at each operator if each begins as early as it can. It also returns a time that recomputes counted, at
// least, which those would have taken to be computed again in part.
func (p *problem) delay(trips []trip, usage []int64) ([]trip, time.Duration) {
	w := &p.work
	w.starts.fill(p.ops(), len(trips), func(i int) int32 { return trips[i].free })
	w.ends.fill(p.ops(), len(trips), func(i int) int32 { return trips[i].need })
	w.flags = zeroed(w.flags, len(trips))
	waits := w.flags
	held, low := int64(0), len(trips) // bytes of trips that wait, and the first of them
	for op := range p.ops() {
		for _, i := range w.ends.of(op) {
			if waits[i] {
				waits[i] = false
				held -= p.graph.Tensors[trips[i].tensor].Bytes
				trips[i].free = trips[i].need
			}
		}
		for _, i := range w.starts.of(op) {
			if trips[i].bytes > 0 {
				waits[i] = true
				held += p.graph.Tensors[trips[i].tensor].Bytes
				low = min(low, int(i))
			}
		}
		for ; usage[op]+held > p.limits.Device; low++ {
			if waits[low] {
				waits[low] = false
				held -= p.graph.Tensors[trips[low].tensor].Bytes
				trips[low].free = op
			}
		}
	}
	less := time.Duration(0)
	trips = takeAway(trips, func(x *trip) bool {
		if x.free >= x.need && p.rest(x) > 0 {
			less += w.again[x.need]
		}
		return x.free >= x.need
	})
	return trips, less
}

// pace returns when each operator begins if nothing waits for copies to the device.
func (p *problem) pace(trips []trip) []time.Duration {
	w := &p.work
	w.starts.fill(p.ops(), len(trips), func(i int) int32 { return trips[i].free })
	w.begin, w.before = zeroed(w.begin, int(p.ops())+1), zeroed(w.before, int(p.ops())+1)
	w.left = zeroed(w.left, len(p.graph.Tensors)) // ends of the copies to the host
	c := clock{link: p.limits.Link}
	next := 0
	for op := range p.ops() {
		w.before[op] = c.now
		for ; next < len(trips) && (trips[next].bytes == 0 || trips[next].out <= op); next++ {
			if x := &trips[next]; x.bytes > 0 && w.left[x.tensor] == 0 {
				w.left[x.tensor] = c.copy(x.bytes)
			}
		}
		for _, i := range w.starts.of(op) {
			c.now = max(c.now, w.left[trips[i].tensor])
		}
		c.now += w.again[op]
		w.begin[op] = c.now
		c.now += p.graph.Ops[op].Duration
	}
	w.begin[p.ops()], w.before[p.ops()] = c.now, c.now
	return w.begin
}

// hasten lets trips begin as soon as their copies to the host have ended, by the last pace, if that is before memory is needed.
func (p *problem) hasten(trips []trip) {
	w := &p.work
	for i := range trips {
		x := &trips[i]
		x.free = min(x.free, max(x.after+1, firstAt(w.before, w.left[x.tensor])))
	}
}
