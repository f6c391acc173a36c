package policy

import (
	"math"

	"gm/internal/swap/draft"
)

// levels holds a number for each operator, and answers for stretches of operators at a time.
type levels struct {
	size  int     // a power of two
	add   []int64 // to all below a node of the tree, node 1 being its root
	worst []int64 // the greatest below it, with what is to be added there
}

// set gives each operator its number.
func (l *levels) set(numbers []int64) {
	for l.size = 1; l.size < len(numbers); l.size *= 2 {
	}
	l.add, l.worst = draft.Zeroed(l.add, 2*l.size), draft.Zeroed(l.worst, 2*l.size)
	for i := range l.size {
		l.worst[l.size+i] = math.MinInt64 / 2
		if i < len(numbers) {
			l.worst[l.size+i] = numbers[i]
		}
	}
	for node := l.size - 1; node > 0; node-- {
		l.worst[node] = max(l.worst[2*node], l.worst[2*node+1])
	}
}

// raise adds to the numbers of the operators from first to the one before end.
func (l *levels) raise(first, end int32, by int64) {
	if first < end {
		l.visit(1, 0, l.size, int(first), int(end), by)
	}
}

// most returns the greatest number of the operators from first to the one before end.
func (l *levels) most(first, end int32) int64 {
	if first >= end {
		return math.MinInt64 / 2
	}
	return l.visit(1, 0, l.size, int(first), int(end), 0)
}

// visit adds to the numbers from first to end below a node, which is above those from low to high, and returns the greatest of them.
func (l *levels) visit(node, low, high, first, end int, by int64) int64 {
	if first <= low && high <= end {
		l.add[node] += by
		l.worst[node] += by
		return l.worst[node]
	}
	most := int64(math.MinInt64 / 2)
	middle := (low + high) / 2
	if first < middle {
		most = l.visit(2*node, low, middle, first, end, by)
	}
	if end > middle {
		most = max(most, l.visit(2*node+1, middle, high, first, end, by))
	}
	l.worst[node] = max(l.worst[2*node], l.worst[2*node+1]) + l.add[node]
	return most + l.add[node]
}
