package draft

import "slices"

// Page is a tensor on the device between two moments, in which it may be sent to the host and fetched again.
type Page struct {
	Tensor int32
	Made   int32   // the operator that writes it, or before which it is recomputed
	Uses   []int32 // that need it, ascending
	Fixed  bool    // it stays
}

func (x *Page) last() int32 { return x.Uses[len(x.Uses)-1] }

// Pager sends pages to the host where memory is short, and no sooner: before an operator that does not fit.
type Pager struct {
	*Problem
	Pages     []Page
	Transient []int64 // bytes that each operator takes beside pages
	Rank      Ranking
	Late      bool // copies to the host begin when memory is short, not when the page is written

	State  []PageState
	here   []int32  // pages on the device
	queue  victims  // those that may go, unless ranks move
	passed []victim // those that cannot go before the present operator
	used   int64
	host   int64
	Usage  []int64 // bytes in use at each operator
	Trips  []Trip
	ticket int32
}

// Ranking says which pages go first: those of the highest rank.
type Ranking struct {
	Of    func(q *Pager, i, op int32) float64
	Moves bool // with the operator, and not just when the page comes or is used
}

type PageState struct {
	here    bool
	hosted  bool
	Next    int   // use
	Arrived int32 // turn in which it arrived on the device
	Touched int32 // the last operator that it was used by
	pinned  int32 // 1 + the operator that it must not be sent away before
	at      int32 // its place among the pages on the device
	trip    int32
}

// planPages is demand paging: the page of the highest rank goes first. Copies back begin as soon as they are useful and memory allows.
func (p *Problem) planPages(rank Ranking) (*Pager, error) {
	q := &Pager{Problem: p, Rank: rank, Transient: make([]int64, p.Ops())}
	for t := range p.Graph.Tensors {
		q.Pages = append(q.Pages, Page{Tensor: int32(t), Made: p.Graph.Tensors[t].Made, Uses: p.Graph.Tensors[t].Uses})
	}
	return q, q.Run()
}

// Run finds the trips, which end when the page is needed.
func (q *Pager) Run() error {
	q.State = make([]PageState, len(q.Pages))
	q.Usage = make([]int64, q.Ops())
	made := make([][]int32, q.Ops())
	used := make([][]int32, q.Ops())
	for i := range q.Pages {
		x := &q.Pages[i]
		made[x.Made] = append(made[x.Made], int32(i))
		for _, op := range x.Uses {
			used[op] = append(used[op], int32(i))
		}
	}
	for op := range q.Ops() {
		if err := q.step(op, made[op], used[op]); err != nil {
			return err
		}
	}
	return nil
}

// step makes room for an operator and lets it run.
func (q *Pager) step(op int32, made, used []int32) error {
	takes := q.Transient[op] + q.Graph.Ops[op].Base
	for _, i := range slices.Concat(made, used) {
		if s := &q.State[i]; s.pinned != op+1 {
			s.pinned = op + 1
			if !s.here {
				takes += q.Size(i)
			}
		}
	}
	if err := q.makeRoom(op, takes); err != nil {
		return err
	}
	q.Usage[op] = q.used + takes
	for _, i := range slices.Concat(made, used) {
		if !q.State[i].here {
			q.arrive(i, op)
		}
	}
	for _, i := range used {
		s := &q.State[i]
		s.Touched = op
		if s.Next++; op == q.Pages[i].last() {
			q.leave(i)
			if s.hosted {
				q.host -= q.Size(i)
			}
		}
	}
	for _, i := range slices.Concat(made, used) {
		if q.State[i].here && !q.Pages[i].Fixed && !q.Rank.Moves && q.Pages[i].Uses[q.State[i].Next] > op+1 {
			q.queue.push(victim{q.Rank.Of(q, i, op), i})
		}
	}
	return nil
}

func (q *Pager) Size(i int32) int64 { return q.Graph.Tensors[q.Pages[i].Tensor].Bytes }

func (q *Pager) arrive(i, op int32) {
	s := &q.State[i]
	if s.hosted {
		q.Trips[s.trip].Need = op
	}
	q.ticket++
	s.here, s.Arrived, s.Touched = true, q.ticket, op
	s.at = int32(len(q.here))
	q.here = append(q.here, i)
	q.used += q.Size(i)
}

func (q *Pager) leave(i int32) {
	at, last := q.State[i].at, q.here[len(q.here)-1]
	q.here[at], q.State[last].at = last, at
	q.here = q.here[:len(q.here)-1]
	q.State[i].here = false
	q.used -= q.Size(i)
}

// makeRoom sends pages away until an operator that needs more bytes fits.
func (q *Pager) makeRoom(op int32, takes int64) error {
	next := q.next
	if q.Rank.Moves {
		next = q.search
	}
	for q.used+takes > q.Limits.Device {
		i, ok := next(op)
		if !ok {
			return q.short(op, q.used+takes-q.Limits.Device)
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
func (q *Pager) search(op int32) (int32, bool) {
	var best victim
	found := false
	for _, i := range q.here {
		if q.stays(i, op) || q.lacks(i) > 0 {
			continue
		}
		if x := (victim{q.Rank.Of(q, i, op), i}); !found || x.before(best) {
			best, found = x, true
		}
	}
	return best.page, found
}

// stays reports whether a page must not go before an operator.
func (q *Pager) stays(i, op int32) bool { return q.Pages[i].Fixed || q.State[i].pinned == op+1 }

// next returns the page of the highest rank that can go before an operator. It drops queue entries of pages that have gone or were used since.
func (q *Pager) next(op int32) (int32, bool) {
	for len(q.queue) > 0 {
		x := q.queue.pop()
		switch {
		case !q.State[x.page].here || x.rank != q.Rank.Of(q, x.page, op):
		case q.stays(x.page, op) || q.lacks(x.page) > 0:
			q.passed = append(q.passed, x)
		default:
			return x.page, true
		}
	}
	return 0, false
}

// lacks returns how many bytes of host memory are missing for a page to go there.
func (q *Pager) lacks(i int32) int64 {
	if q.State[i].hosted {
		return 0
	}
	return max(0, q.host+q.Size(i)-q.Limits.Host)
}

// short returns the error of an operator that does not fit when no page can go: bytes are missing on the device, or on the host if that is full.
func (q *Pager) short(op int32, bytes int64) error {
	full := int64(0) // the fewest bytes of host memory that are missing
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
func (q *Pager) evict(i, op int32) {
	x, s := &q.Pages[i], &q.State[i]
	t := Trip{Tensor: x.Tensor, Bytes: q.Size(i), Out: x.Made + 1, Free: op, Need: x.Uses[s.Next]}
	if q.Late {
		t.Out = op
	}
	if !s.hosted {
		s.hosted = true
		q.host += t.Bytes
	}
	s.trip = int32(len(q.Trips))
	q.Trips = append(q.Trips, t)
	q.leave(i)
}
