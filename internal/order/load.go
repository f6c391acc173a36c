package order

import (
	"fmt"
	"slices"
)

// Loads returns the bytes in memory at each place of an order, while the operator there runs.
func (l *Links) Loads(order []int32) []int64 {
	return l.AppendLoads(nil, order, make([]int32, len(l.Problem.Tensors)))
}

// AppendLoads appends them to loads. Left has room for a number for each tensor.
func (l *Links) AppendLoads(loads []int64, order, left []int32) []int64 {
	p := l.Problem
	for i := range p.Tensors {
		left[i] = int32(len(p.Tensors[i].Ops))
	}
	var live int64
	for _, op := range order {
		var freed int64
		for _, t := range l.Touched.Of(op) {
			tensor := &p.Tensors[t]
			if left[t] == int32(len(tensor.Ops)) {
				live += tensor.Bytes
			}
			if left[t]--; left[t] == 0 {
				freed += tensor.Bytes
			}
		}
		loads = append(loads, live+p.Temp[op]-l.TakenOver(op, left))
		live -= freed
	}
	return loads
}

// TakenOver returns the bytes that an operator writes over those that it reads, and needs no memory for. Left is how many operators that
// touch a tensor have not run, this one not counted: of a tensor that is written over it is 0.
func (l *Links) TakenOver(op int32, left []int32) int64 {
	p := l.Problem
	var bytes int64
	var taken [4]int32 // an operator with more results that take places is none
	n := 0
	for _, t := range l.Touched.Of(op) {
		tensor := &p.Tensors[t]
		if len(tensor.Over) == 0 || tensor.Made() != op || n == len(taken) {
			continue
		}
		for _, over := range tensor.Over {
			if left[over] == 0 && p.Tensors[over].Bytes >= tensor.Bytes && !slices.Contains(taken[:n], over) {
				taken[n] = over
				n++
				bytes += tensor.Bytes
				break
			}
		}
	}
	return bytes
}

// Peak returns the most bytes in memory, and the first place of an order where they are; 0 and -1 for no operators.
func Peak(loads []int64) (bytes int64, place int) {
	place = -1
	for i, load := range loads {
		if place < 0 || load > bytes {
			bytes, place = load, i
		}
	}
	return bytes, place
}

// Check returns an error for an order that is none of the problem: one that leaves out or repeats operators, or puts one before another
// that it has to follow.
func (l *Links) Check(order []int32) error {
	n := l.Problem.Ops()
	if len(order) != n {
		return fmt.Errorf("an order of %d operators, of %d", len(order), n)
	}
	done := make([]bool, n)
	for place, op := range order {
		if op < 0 || int(op) >= n || done[op] {
			return fmt.Errorf("place %d: operator %d is unknown or there before", place, op)
		}
		for _, before := range l.Preds.Of(op) {
			if !done[before] {
				return fmt.Errorf("place %d: operator %d is before operator %d, which it has to follow", place, op, before)
			}
		}
		done[op] = true
	}
	return nil
}
