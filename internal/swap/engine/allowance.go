package engine

import "sync/atomic"

// Allowance is how much memory of the host several engines may pin together, in bytes.
type Allowance struct{ left, lent atomic.Int64 }

// NewAllowance returns one of n bytes.
func NewAllowance(n int64) *Allowance {
	a := new(Allowance)
	a.left.Store(n)
	return a
}

// take returns whether n bytes were left. Of no allowance there are always.
func (a *Allowance) take(n int64) bool {
	if a == nil {
		return true
	}
	if a.left.Add(-n) < 0 {
		a.left.Add(n)
		return false
	}
	return true
}

func (a *Allowance) give(n int64) {
	if a != nil {
		a.left.Add(n)
	}
}

// lend takes n bytes that are given back when nobody borrows them.
func (a *Allowance) lend(n int64) bool {
	if !a.take(n) {
		return false
	}
	if a != nil {
		a.lent.Add(n)
	}
	return true
}

func (a *Allowance) repay(n int64) {
	a.give(n)
	if a != nil {
		a.lent.Add(-n)
	}
}

// lends returns whether something is borrowed, by any of the engines.
func (a *Allowance) lends() bool { return a != nil && a.lent.Load() > 0 }

// most returns how many of n bytes are left.
func (a *Allowance) most(n int64) int64 {
	if a == nil {
		return n
	}
	return min(n, max(0, a.left.Load()))
}
