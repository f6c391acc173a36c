package policy

import (
	"errors"
	"math"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// away is a gap in which a tensor is not on the device.
type away struct {
	draft.Gap
	bytes int64 // copied to the host; the rest is recomputed
}

// workspace is memory that schedules are made in, one after the other.
type workspace struct {
	trips                []draft.Trip
	usage, ghosts        []int64
	again, begin, before []time.Duration
	launch               []time.Duration // of what is recomputed before each operator
	left                 []time.Duration
	flags                []bool

	starts, ends draft.Buckets
}

// realize returns the best schedule that it finds for what is away, which is in the order in which the tensors are made. Memory is freed when it
// is needed, or earlier if nothing waits for that; copies to the device begin in time to end when they are needed, as far as memory allows.
// Actions are valid until the next call. The error is a *ShortError.
func (p *problem) realize(all []away) ([]swap.Action, error) {
	return p.realizeWithin(all, math.MaxInt64)
}

// errSlow says that a step takes longer than it may.
var errSlow = errors.New("the step takes too long")

// realizeWithin does the same, or returns errSlow early if the step would take longer than a time.
func (p *problem) realizeWithin(all []away, most time.Duration) ([]swap.Action, error) {
	trips := p.work.trips[:0]
	for _, x := range all {
		trips = append(trips, draft.Trip{Tensor: x.Tensor, Bytes: x.bytes, After: x.After, Free: x.After + 1, Back: x.Before, Need: x.Before})
	}
	p.work.trips = trips
	trips = p.Advance(trips)
	if least := p.recomputes(trips); max(p.Begin[p.Ops()]+least, p.Paced[p.Ops()]) > most {
		return nil, errSlow
	}
	usage := p.usage(trips)
	if op, short := draft.Over(usage, p.Limits.Device); short > 0 {
		return nil, &draft.ShortError{Bytes: short, Op: op}
	}
	trips, less := p.delay(trips, usage)
	p.Queue(trips)
	begin := p.pace(trips)
	if begin[p.Ops()]-less > most {
		return nil, errSlow
	}
	p.hasten(trips)
	p.Hoist(trips, p.usage(trips), begin)
	return p.Compile(trips, p.Remake.Dead), nil
}

// usage returns the bytes in use at each operator if trips end at the need. The ghosts are those of recomputes.
func (p *problem) usage(trips []draft.Trip) []int64 {
	usage := draft.Zeroed(p.work.usage, int(p.Ops())+1)
	p.work.usage = usage
	for i := range trips {
		bytes := p.Graph.Tensors[trips[i].Tensor].Bytes
		usage[trips[i].Free] -= bytes
		usage[trips[i].Need] += bytes
	}
	away := int64(0)
	for op, plain := range p.Plain {
		away += usage[op]
		usage[op] = plain + away + p.work.ghosts[op]
	}
	return usage[:p.Ops()]
}

// recomputes finds the bytes of ghosts before each operator, with those that are taken while something is recomputed, and how long what is recomputed there takes. It returns how long that is where no
// trip that copies ends, which may be dropped.
func (p *problem) recomputes(trips []draft.Trip) (least time.Duration) {
	n := int(p.Ops())
	ghosts, took, launch := draft.Zeroed(p.work.ghosts, n), draft.Zeroed(p.work.again, n), draft.Zeroed(p.work.launch, n)
	p.work.ghosts, p.work.again, p.work.launch = ghosts, took, launch
	r := &p.Compiler.Recipe
	p.EachAgain(trips, func(again []int32) {
		op, certain, beside := trips[again[0]].Need, true, int64(0)
		p.Remake.Begin(r)
		for _, i := range again {
			x := &trips[i]
			certain = certain && x.Bytes == 0
			t := &p.Graph.Tensors[x.Tensor]
			p.Remake.Add(r, x.Tensor, op, p.Remake.Dead)
			took[op] += time.Duration(float64(t.Recompute) * float64(p.Rest(x)) / float64(t.Bytes))
			launch[op] += t.Relaunch
			beside = max(beside, p.Remake.Beside(r, x.Tensor))
		}
		ghosts[op] += beside
		for _, t := range r.Ghosts {
			ghosts[op] += p.Graph.Tensors[t].Bytes
			took[op] += p.Graph.Tensors[t].Recompute
			launch[op] += p.Graph.Tensors[t].Relaunch
		}
		if certain {
			least += took[op]
		}
	})
	return least
}

// delay lets the trips that copy begin only where memory is needed, in the order in which copies end, and drops unnecessary ones. Usage is the
// bytes in use at each operator if each trip begins as early as it can. It also returns a lower bound of the recomputation time, counted by
// recomputes, that the dropped trips save.
func (p *problem) delay(trips []draft.Trip, usage []int64) ([]draft.Trip, time.Duration) {
	w := &p.work
	w.starts.Fill(p.Ops(), len(trips), func(i int) int32 { return trips[i].Free })
	w.ends.Fill(p.Ops(), len(trips), func(i int) int32 { return trips[i].Need })
	w.flags = draft.Zeroed(w.flags, len(trips))
	waits := w.flags
	held, low := int64(0), len(trips) // bytes of trips that wait, and the first of them
	for op := range p.Ops() {
		for _, i := range w.ends.Of(op) {
			if waits[i] {
				waits[i] = false
				held -= p.Graph.Tensors[trips[i].Tensor].Bytes
				trips[i].Free = trips[i].Need
			}
		}
		for _, i := range w.starts.Of(op) {
			if trips[i].Bytes > 0 {
				waits[i] = true
				held += p.Graph.Tensors[trips[i].Tensor].Bytes
				low = min(low, int(i))
			}
		}
		for ; usage[op]+held > p.Limits.Device; low++ {
			if waits[low] {
				waits[low] = false
				held -= p.Graph.Tensors[trips[low].Tensor].Bytes
				trips[low].Free = op
			}
		}
	}
	less := time.Duration(0)
	trips = draft.TakeAway(trips, func(x *draft.Trip) bool {
		if x.Free >= x.Need && p.Rest(x) > 0 {
			less += w.again[x.Need] + w.launch[x.Need]
		}
		return x.Free >= x.Need
	})
	return trips, less
}

// pace returns when each operator begins if nothing waits for copies to the device.
func (p *problem) pace(trips []draft.Trip) []time.Duration {
	w := &p.work
	w.starts.Fill(p.Ops(), len(trips), func(i int) int32 { return trips[i].Free })
	w.begin, w.before = draft.Zeroed(w.begin, int(p.Ops())+1), draft.Zeroed(w.before, int(p.Ops())+1)
	w.left = draft.Zeroed(w.left, len(p.Graph.Tensors)) // ends of the copies to the host
	c := draft.Clock{Link: p.Limits.Link}
	next, program := 0, time.Duration(0)
	for op := range p.Ops() {
		w.before[op] = c.Now
		for ; next < len(trips) && (trips[next].Bytes == 0 || trips[next].Out <= op); next++ {
			if x := &trips[next]; x.Bytes > 0 && w.left[x.Tensor] == 0 {
				w.left[x.Tensor] = c.Copy(x.Bytes)
			}
		}
		for _, i := range w.starts.Of(op) {
			c.Now = max(c.Now, w.left[trips[i].Tensor])
		}
		program += w.launch[op]
		c.Now = max(c.Now+w.again[op], program)
		w.begin[op] = c.Now
		program += p.Graph.Ops[op].Launch
		c.Now = max(c.Now+p.Graph.Ops[op].Duration, program)
	}
	w.begin[p.Ops()], w.before[p.Ops()] = c.Now, c.Now
	return w.begin
}

// hasten lets trips begin as soon as their copies to the host have ended, by the last pace, if that is before memory is needed.
func (p *problem) hasten(trips []draft.Trip) {
	w := &p.work
	for i := range trips {
		x := &trips[i]
		x.Free = min(x.Free, max(x.After+1, draft.FirstAt(w.before, w.left[x.Tensor])))
	}
}
