package lp

import (
	"errors"
	"fmt"

	"gm/internal/dsa"
)

// model is the part of a problem that is written.
type model struct {
	problem *dsa.Problem
	solid   []int32 // the buffers that have a life and a size
	used    []bool  // of each buffer: it is solid, or tied
	pairs   []pair
	aligned []aligned
	cap     int64 // units: Mcap
}

// pair is two buffers that live at the same time; a is less than b.
type pair struct{ a, b int32 }

// aligned is a buffer whose offset is a multiple of the given number of units.
type aligned struct {
	buffer   int32
	multiple int64
}

const (
	maxPairs = 2_000_000

	// maxNumber is the greatest number up to which solvers, which use floating point, represent every integer.
	maxNumber = 1 << 53
)

func newModel(p *dsa.Problem, capacity int64) (*model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m := &model{problem: p, used: make([]bool, p.Len())}
	for i := range p.Size {
		if p.Size[i] > 0 && p.Start[i] < p.End[i] {
			m.solid = append(m.solid, int32(i))
			m.used[i] = true
		}
	}
	for _, t := range p.Ties {
		m.used[t.A], m.used[t.B] = true, true
	}
	if len(m.solid) == 0 {
		return nil, errors.New("no buffer has both a life and a size")
	}
	if err := m.align(); err != nil {
		return nil, err
	}
	m.cap = m.stack()
	if capacity > 0 {
		m.cap = min(m.cap, capacity/p.Align)
	}
	if m.cap > maxNumber {
		return nil, fmt.Errorf("addresses up to %d times %d bytes are more than a solver knows exactly", m.cap, p.Align)
	}
	var ok bool
	if m.pairs, ok = conflicts(p, m.solid); !ok {
		return nil, fmt.Errorf("more than %d pairs of buffers live at the same time: no MIP solver copes with those", maxPairs)
	}
	return m, nil
}

// align fills in aligned.
func (m *model) align() error {
	p := m.problem
	for i, own := range p.Aligns {
		if own <= 1 || p.Align%own == 0 || !m.used[i] {
			continue
		}
		multiple := own / gcd(own, p.Align)
		if multiple > maxNumber {
			return fmt.Errorf("buffer %d is aligned to %d bytes, more than a solver knows exactly", i, own)
		}
		m.aligned = append(m.aligned, aligned{int32(i), multiple})
	}
	return nil
}

// stack returns the height of a stack of all buffers, in units, the fixed ones at the bottom.
func (m *model) stack() int64 {
	p := m.problem
	height, fixed := int64(0), int64(0)
	add := func(n int64) { height = min(height+n, maxNumber+1) }
	for _, i := range m.solid {
		add(m.size(i))
		if p.Fixed != nil && p.Fixed[i] != dsa.Free {
			fixed = max(fixed, p.Fixed[i]/p.Align)
		}
	}
	add(min(fixed, maxNumber))
	for _, t := range p.Ties {
		add(min(max(t.Delta, -t.Delta)/p.Align, maxNumber))
	}
	all := int64(1) // a common multiple of all multiples
	for _, a := range m.aligned {
		if all < maxNumber {
			all = min(all/gcd(all, a.multiple)*min(a.multiple, maxNumber/all), maxNumber)
		}
	}
	for range m.aligned {
		add(all - 1)
	}
	return height
}

// size returns the size of a buffer in units.
func (m *model) size(i int32) int64 {
	n, align := m.problem.Size[i], m.problem.Align
	if n%align != 0 {
		return n/align + 1
	}
	return n / align
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
