package objects

import (
	"container/heap"
	"fmt"
	"math/bits"
)

// Policy says which of the objects that nobody uses leaves the card first.
type Policy int

// The policies of Ravenstore (section 1.1.3, 4.2), and one that knows sizes.
const (
	// LRU is the object that was put longest ago.
	LRU Policy = iota
	// FIFO is the object that was created first.
	FIFO
	// SizeLRU is the one that was put longest ago of those that are no larger than it takes, by powers of two: of the smallest size class that
	// is at least what is missing, or else of the largest one there is.
	SizeLRU
	// Latency is the object that is needed last, by what the program says when it puts it; the larger one of two.
	Latency

	policies
)

// soonest is the order of blocks that are needed first.
const soonest = policies + 1

var policyNames = [policies]string{"lru", "fifo", "size-lru", "latency"}

func (p Policy) String() string { return policyNames[p] }

// ParsePolicy returns the policy of a name; "" is lru.
func ParsePolicy(name string) (Policy, error) {
	for p, other := range policyNames {
		if name == other || name == "" {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("no policy is called %q; there are lru, fifo, size-lru and latency", name)
}

// order is blocks that can be taken out by a policy.
type order struct {
	queues []queue // one, or one for each size class
}

// queue is a heap of blocks.
type queue struct {
	policy Policy
	row    int // of a block's ranks
	blocks []*block
}

// A block is in at most one order of each row: of those that can leave a place, and of those that are to be copied.
const (
	toLeave = iota
	toCopy
	rows
)

func newOrder(p Policy, row int) *order {
	n := 1
	if p == SizeLRU {
		n = bits.UintSize
	}
	o := &order{queues: make([]queue, n)}
	for i := range o.queues {
		o.queues[i].policy, o.queues[i].row = p, row
	}
	return o
}

// class returns the queue of a size.
func (o *order) class(size int64) int {
	if len(o.queues) == 1 {
		return 0
	}
	return bits.Len64(uint64(size - 1))
}

func (o *order) add(b *block) { heap.Push(&o.queues[o.class(b.size)], b) }

// remove takes a block out, if it is in this order.
func (o *order) remove(b *block) {
	q := &o.queues[o.class(b.size)]
	if i := *q.rank(b) - 1; i >= 0 && i < len(q.blocks) && q.blocks[i] == b {
		heap.Remove(q, i)
	}
}

// first returns the block to leave for need bytes, nil if there is none.
func (o *order) first(need int64) (b *block) {
	for i := range o.queues {
		if len(o.queues[i].blocks) == 0 {
			continue
		}
		b = o.queues[i].blocks[0]
		if i >= o.class(max(need, 1)) {
			return b
		}
	}
	return b
}

// bytes returns the sizes of all blocks in sum.
func (o *order) bytes() (sum int64) {
	for i := range o.queues {
		for _, b := range o.queues[i].blocks {
			sum += b.size
		}
	}
	return sum
}

func (q *queue) rank(b *block) *int { return &b.ranks[q.row] }

// The methods of heap.Interface.

func (q *queue) Len() int { return len(q.blocks) }

func (q *queue) Less(i, j int) bool {
	a, b := q.blocks[i], q.blocks[j]
	switch {
	case q.policy == FIFO:
		return a.made < b.made
	case q.policy == soonest && a.next != b.next:
		return a.next < b.next
	case q.policy == Latency && a.next != b.next:
		return a.next > b.next
	case q.policy == Latency && a.size != b.size:
		return a.size > b.size
	}
	return a.touched < b.touched
}

func (q *queue) Swap(i, j int) {
	a, b := q.blocks[i], q.blocks[j]
	q.blocks[i], q.blocks[j] = b, a
	*q.rank(b), *q.rank(a) = i+1, j+1
}

// Push adds a block.
func (q *queue) Push(x any) {
	b := x.(*block)
	q.blocks = append(q.blocks, b)
	*q.rank(b) = len(q.blocks)
}

// Pop takes the last block out.
func (q *queue) Pop() any {
	last := len(q.blocks) - 1
	b := q.blocks[last]
	q.blocks[last] = nil
	q.blocks = q.blocks[:last]
	*q.rank(b) = 0
	return b
}
