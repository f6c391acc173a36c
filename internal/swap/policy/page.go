package policy

import (
	"slices"
)

// page is a tensor on the device between two moments, in which it may be sent to the host and fetched again.
type page struct {
	tensor int32
	made   int32   // the operator that writes it, or before which it is computed again
	uses   []int32 // that need it, ascending
	fixed  bool    // it stays
}

func (x *page) last() int32 { return x.uses[len(x.uses)-1] }

// pager sends pages to the host where memory is short, and no sooner: before an operator that does not fit.
type pager struct {
	*problem
	pages     []page
	transient []int64 // bytes that each operator takes beside pages
	rank      func(q *pager, i, op int32) float64
	late      bool // copies to the host begin when memory is short, not when the page is written

	state  []pageState
	here   []int32 // pages on the device
	used   int64
	host   int64
	usage  []int64 // bytes in use at each operator
	trips  []trip
	ticket int32
}

type pageState struct {
	here    bool
	hosted  bool
	next    int   // use
	arrived int32 // turn in which it came to the device
	touched int32 // the last operator that it was used by
	pinned  int32 // 1 + the operator that it must not be sent away before
	trip    int32
}

// planPages is demand paging: the page of the highest rank goes first. Copies back begin as soon as they are of use and memory allows.
func (p *problem) planPages(rank func(q *pager, i, op int32) float64) (*pager, error) {
	q := &pager{problem: p, rank: rank, transient: make([]int64, p.ops())}
	for t := range p.graph.Tensors {
		q.pages = append(q.pages, page{tensor: int32(t), made: p.graph.Tensors[t].Made, uses: p.graph.Tensors[t].Uses})
	}
	return q, q.run()
}

// run finds the trips, which end when the page is needed.
func (q *pager) run() error {
	q.state = make([]pageState, len(q.pages))
	q.usage = make([]int64, q.ops())
	made := make([][]int32, q.ops())
	used := make([][]int32, q.ops())
	for i := range q.pages {
		x := &q.pages[i]
		made[x.made] = append(made[x.made], int32(i))
		for _, op := range x.uses {
			used[op] = append(used[op], int32(i))
		}
	}
	for op := range q.ops() {
		if err := q.step(op, made[op], used[op]); err != nil {
			return err
		}
	}
	return nil
}

// step makes room for an operator and lets it run.
func (q *pager) step(op int32, made, used []int32) error {
	takes := q.transient[op] + q.graph.Ops[op].Base
	for _, i := range slices.Concat(made, used) {
		if s := &q.state[i]; s.pinned != op+1 {
			s.pinned = op + 1
			if !s.here {
				takes += q.size(i)
			}
		}
	}
	for q.used+takes > q.limits.Device {
		if err := q.evict(op, q.used+takes-q.limits.Device); err != nil {
			return err
		}
	}
	q.usage[op] = q.used + takes
	for _, i := range slices.Concat(made, used) {
		if !q.state[i].here {
			q.arrive(i, op)
		}
	}
	for _, i := range used {
		s := &q.state[i]
		s.touched = op
		if s.next++; op == q.pages[i].last() {
			q.leave(i)
			if s.hosted {
				q.host -= q.size(i)
			}
		}
	}
	return nil
}

func (q *pager) size(i int32) int64 { return q.graph.Tensors[q.pages[i].tensor].Bytes }

func (q *pager) arrive(i, op int32) {
	s := &q.state[i]
	if s.hosted {
		q.trips[s.trip].need = op
	}
	q.ticket++
	s.here, s.arrived, s.touched = true, q.ticket, op
	q.here = append(q.here, i)
	q.used += q.size(i)
}

func (q *pager) leave(i int32) {
	at := slices.Index(q.here, i)
	q.here[at] = q.here[len(q.here)-1]
	q.here = q.here[:len(q.here)-1]
	q.state[i].here = false
	q.used -= q.size(i)
}

// evict sends a page away before an operator that is so many bytes short.
func (q *pager) evict(op int32, short int64) error {
	victim, full := int32(-1), int64(0) // the least that the host is short of
	var most float64
	for _, i := range q.here {
		if q.pages[i].fixed || q.state[i].pinned == op+1 {
			continue
		}
		if lacks := q.host + q.size(i) - q.limits.Host; !q.state[i].hosted && lacks > 0 {
			if full == 0 || lacks < full {
				full = lacks
			}
			continue
		}
		if rank := q.rank(q, i, op); victim < 0 || rank > most || rank == most && i < victim {
			victim, most = i, rank
		}
	}
	if victim < 0 && full > 0 {
		return &ShortError{Bytes: full, Op: op, Host: true}
	}
	if victim < 0 {
		return &ShortError{Bytes: short, Op: op}
	}
	x, s := &q.pages[victim], &q.state[victim]
	t := trip{tensor: x.tensor, bytes: q.size(victim), out: x.made + 1, free: op, need: x.uses[s.next]}
	if q.late {
		t.out = op
	}
	if !s.hosted {
		s.hosted = true
		q.host += t.bytes
	}
	s.trip = int32(len(q.trips))
	q.trips = append(q.trips, t)
	q.leave(victim)
	return nil
}
