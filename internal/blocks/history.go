package blocks

import (
	"math"
	"slices"

	"gm/internal/cuda"
)

// Request is one request of an iteration that a job repeats.
type Request struct {
	Size   int64 // bytes
	Stream cuda.Stream
	Lasts  int32 // it was freed before the request this many later; 0 if it outlived an iteration
}

// history keeps the requests of a job until the last ones are an iteration three times over.
type history struct {
	requests []recorded
	open     index // the request whose block is at an address
	live     int64 // bytes
	next     int   // the number of requests at which to look for a repetition
	limit    int   // requests to keep at most
	found    func(iteration []Request)
	marks    []int      // the numbers of requests at which iterations began
	reversed []recorded // buffers of matches
	z        []int
}

type recorded struct {
	Request
	live int64 // bytes in use before it
}

// leastIteration is the least number of requests of an iteration.
const leastIteration = 16

// MaxRecorded is the most requests to record in search of an iteration.
const MaxRecorded = 1 << 18

// Record keeps the requests from now on in memory, up to a limit, and calls found once they repeat: once iterations request the same sizes
// in the same order and leave as much memory in use as they found. It calls found within Malloc.
func (c *Cyclic) Record(limit int, found func(iteration []Request)) {
	c.history = &history{open: newIndex(), next: 3 * leastIteration, limit: limit, found: found}
}

// Mark says that an iteration ends and the next one begins. From the first mark on requests are kept, up to a limit. Once there are two
// iterations it stops recording and returns the first; the second has shown how long its requests last. Where there is a plan, which
// begins at a mark, the next request is expected to be its first.
func (c *Cyclic) Mark(limit int) (iteration []Request) {
	switch {
	case c.cycle != nil:
		if c.begun {
			c.jump(0)
		}
		c.next = 0
		return nil
	case c.history == nil:
		c.history = &history{open: newIndex(), next: math.MaxInt, limit: limit} // repetitions are not looked for
		c.compared = true
	}
	r := c.history
	if r.marks = append(r.marks, len(r.requests)); len(r.marks) < 3 {
		return nil
	}
	iteration = r.between(r.marks[0], r.marks[1])
	c.StopRecording()
	return iteration
}

// Room returns how many bytes the arenas of a plan can have, for an iteration that was recorded and another one that begins now: those that nobody has,
// those that are free, in whole pieces of the streams of its requests, and those of its requests that are in use now, which the plan has a place for.
func (c *Cyclic) Room(iteration []Request) int64 {
	room, _, err := c.dev.MemInfo()
	if err != nil {
		return 0
	}
	seen := map[*heap]bool{}
	for i, r := range iteration {
		if i+int(r.Lasts) > len(iteration) {
			room += roundUp(r.Size, minBlockSize)
		}
		if h := c.heapOf(r.Stream); r.Lasts > 0 && !seen[h] {
			seen[h] = true
			c.settle(h)
			room += h.idle.bytes()
		}
	}
	return room
}

// StopRecording forgets the requests that were kept.
func (c *Cyclic) StopRecording() { c.history, c.compared = nil, c.cycle != nil }

// Recording reports whether requests are still kept.
func (c *Cyclic) Recording() bool { return c.history != nil }

// malloc notes a request that was served, and returns whether recording is over.
func (r *history) malloc(p cuda.Ptr, size int64, stream cuda.Stream) (over bool) {
	r.open.Set(p, int32(len(r.requests)))
	r.requests = append(r.requests, recorded{Request{Size: size, Stream: stream}, r.live})
	r.live += size
	if len(r.requests) == r.next {
		r.next += max(r.next/8, leastIteration)
		if iteration := r.repetition(); iteration != nil {
			r.found(iteration)
			return true
		}
	}
	return len(r.requests) >= r.limit
}

func (r *history) free(p cuda.Ptr) {
	if i, ok := r.open.Take(p); ok {
		r.requests[i].Lasts = int32(len(r.requests)) - i
		r.live -= r.requests[i].Size
	}
}

// repetition returns the iteration that the last requests repeat three times, beginning where the least memory is in use; nil if there is
// none.
func (r *history) repetition() []Request {
	period := r.period()
	if period == 0 {
		return nil
	}
	begin := len(r.requests) - 2*period
	quiet := begin
	for i := begin; i < begin+period; i++ {
		if r.requests[i].live < r.requests[quiet].live {
			quiet = i
		}
	}
	iteration := make([]Request, period)
	for i := range iteration {
		// The iteration before counts, too: what is freed late in this one may still be in use.
		now, before := r.requests[quiet+i], r.requests[quiet+i-period]
		iteration[i] = now.Request
		if iteration[i].Lasts = max(now.Lasts, before.Lasts); now.Lasts == 0 || int(iteration[i].Lasts) > period {
			iteration[i].Lasts = 0
		}
	}
	return iteration
}

// between returns the requests of an iteration. What lasts longer than as many requests outlives it.
func (r *history) between(lo, hi int) []Request {
	iteration := make([]Request, hi-lo)
	for i := range iteration {
		iteration[i] = r.requests[lo+i].Request
		if int(iteration[i].Lasts) > hi-lo {
			iteration[i].Lasts = 0
		}
	}
	return iteration
}

// period returns the least length of an iteration that the last requests repeat three times, 0 if there is none. An inner loop, such as
// over layers, differs by the memory that it leaves in use or frees.
func (r *history) period() int {
	n := len(r.requests)
	z := r.matches()
	for p := leastIteration; 3*p <= n; p++ {
		if z[p] < 2*p {
			continue
		}
		last, before, first := r.requests[n-1].live, r.requests[n-1-p].live, r.requests[n-1-2*p].live
		if last == before && before == first {
			return p
		}
	}
	return 0
}

// matches returns, for each distance, how many of the last requests equal those at that distance before them: the Z-function of the
// requests, the last one first.
func (r *history) matches() []int {
	last := append(r.reversed[:0], r.requests...)
	slices.Reverse(last)
	same := func(i, j int) bool { return last[i].Size == last[j].Size && last[i].Stream == last[j].Stream }
	z := append(r.z[:0], make([]int, len(last))...)
	r.reversed, r.z = last, z
	begin, end := 0, 0
	for i := 1; i < len(last); i++ {
		if i < end {
			z[i] = min(end-i, z[i-begin])
		}
		for i+z[i] < len(last) && same(z[i], i+z[i]) {
			z[i]++
		}
		if i+z[i] > end {
			begin, end = i, i+z[i]
		}
	}
	return z
}
