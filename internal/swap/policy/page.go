package policy

import "slices"

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
	rank      ranking
	late      bool // copies to the host begin when memory is short, not when the page is written

	state  []pageState
	here   []int32  // pages on the device
	queue  victims  // those that may go, unless ranks move
	passed []victim // those that cannot go before the present operator
	used   int64
	host   int64
	usage  []int64 // bytes in use at each operator
	trips  []trip
	ticket int32
}

// ranking says which pages go first: those of the highest rank.
type ranking struct {
	of    func(q *pager, i, op int32) float64
	moves bool // with the operator, and not just when the page comes or is used
}

type pageState struct {
	here    bool
	hosted  bool
	next    int   // use
	arrived int32 // turn in which it came to the device
	touched int32 // the last operator that it was used by
	pinned  int32 // 1 + the operator that it must not be sent away before
	at      int32 // its place among the pages on the device
	trip    int32
}

// planPages is demand paging: the page of the highest rank goes first. Copies back begin as soon as they are of use and memory allows.
func (p *problem) planPages(rank ranking) (*pager, error) {
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
	if err := q.makeRoom(op, takes); err != nil {
		return err
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
	for _, i := range slices.Concat(made, used) {
		if q.state[i].here && !q.pages[i].fixed && !q.rank.moves {
			q.queue.push(victim{q.rank.of(q, i, op), i})
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
	s.at = int32(len(q.here))
	q.here = append(q.here, i)
	q.used += q.size(i)
}

func (q *pager) leave(i int32) {
	at, last := q.state[i].at, q.here[len(q.here)-1]
	q.here[at], q.state[last].at = last, at
	q.here = q.here[:len(q.here)-1]
	q.state[i].here = false
	q.used -= q.size(i)
}

// makeRoom sends pages away before an operator that takes so many bytes more.
func (q *pager) makeRoom(op int32, takes int64) error {
	next := q.next
	if q.rank.moves {
		next = q.search
	}
	for q.used+takes > q.limits.Device {
		i, ok := next(op)
		if !ok {
			return q.short(op, q.used+takes-q.limits.Device)
		}
		q.evict(i, op)
	}
	for _, x := range q.passed {
		q.queue.push(x)
	}
	q.passed = q.passed[:0]
	return nil
}

// search looks at all pages for the one of the highest rank that can go before an operator.
func (q *pager) search(op int32) (int32, bool) {
	var best victim
	found := false
	for _, i := range q.here {
		if q.stays(i, op) || q.lacks(i) > 0 {
			continue
		}
		if x := (victim{q.rank.of(q, i, op), i}); !found || x.before(best) {
			best, found = x, true
		}
	}
	return best.page, found
}

// stays says that a page must not go before an operator.
func (q *pager) stays(i, op int32) bool { return q.pages[i].fixed || q.state[i].pinned == op+1 }

// next returns the page of the highest rank that can go before an operator. What the queue holds of pages that have gone or were used since
// is dropped.
func (q *pager) next(op int32) (int32, bool) {
	for len(q.queue) > 0 {
		x := q.queue.pop()
		switch {
		case !q.state[x.page].here || x.rank != q.rank.of(q, x.page, op):
		case q.stays(x.page, op) || q.lacks(x.page) > 0:
			q.passed = append(q.passed, x)
		default:
			return x.page, true
		}
	}
	return 0, false
}

// lacks returns the bytes that the host is short of for a page to go there.
func (q *pager) lacks(i int32) int64 {
	if q.state[i].hosted {
		return 0
	}
	return max(0, q.host+q.size(i)-q.limits.Host)
}

// short returns the error of an operator that is so many bytes short when no page can go: of the device, or of the host if that is full.
func (q *pager) short(op int32, bytes int64) error {
	full := int64(0) // the least that the host is short of
	for _, i := range q.here {
		if lacks := q.lacks(i); !q.stays(i, op) && (full == 0 || lacks < full) {
			full = lacks
		}
	}
	if full > 0 {
		return &ShortError{Bytes: full, Op: op, Host: true}
	}
	return &ShortError{Bytes: bytes, Op: op}
}

// evict sends a page away before an operator.
func (q *pager) evict(i, op int32) {
	x, s := &q.pages[i], &q.state[i]
	t := trip{tensor: x.tensor, bytes: q.size(i), out: x.made + 1, free: op, need: x.uses[s.next]}
	if q.late {
		t.out = op
	}
	if !s.hosted {
		s.hosted = true
		q.host += t.bytes
	}
	s.trip = int32(len(q.trips))
	q.trips = append(q.trips, t)
	q.leave(i)
}
