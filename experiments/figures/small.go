package main

import (
	"context"
	"fmt"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/models/layouts"
)

// So many problems are solved by brute force as well. With more buffers that takes too long, with fewer there is always a layout at
// the load.
const (
	smallProblems = 20_000
	leastBuffers  = 8
	mostBuffers   = 12
)

// measureSmall compares the solvers that prove what they find with brute force, and with solvers of mixed integer programs.
func measureSmall(e *experiment) error {
	problems := make([]*dsa.Problem, smallProblems)
	least := make([]int64, smallProblems)
	above := 0
	start := time.Now()
	for i := range problems {
		problems[i] = layouts.Crowded(leastBuffers+i%(mostBuffers-leastBuffers+1), uint64(i))
		b := newBrute(problems[i])
		b.place(0, 0, 0)
		least[i] = b.best
		if b.best > b.bound {
			above++
		}
	}
	e.table.Add(fmt.Sprintf("small: %d by brute force", smallProblems),
		fmt.Sprintf("%d have no layout at the load, %.1f s", above, time.Since(start).Seconds()), "", "")
	for _, name := range []string{"exact", "pairs"} {
		if err := e.small(name, problems, least); err != nil {
			return err
		}
	}
	return measureMIP(e)
}

// small solves the problems with one of the solvers.
func (e *experiment) small(name string, problems []*dsa.Problem, least []int64) error {
	s, err := solvers.Lookup(name)
	if err != nil {
		e.table.Add("small by "+name, "no such solver", "", "not measured")
		return nil
	}
	same := 0
	var took time.Duration
	for i, p := range problems {
		start := time.Now()
		l, err := s.Solve(context.Background(), p, dsa.Options{Workers: 1})
		took += time.Since(start)
		if err == nil {
			err = dsa.Check(p, l)
		}
		if err != nil {
			return fmt.Errorf("%s: problem %d: %w", name, i, err)
		}
		if l.Optimal() && l.Peak == least[i] {
			same++
		}
	}
	e.add("small by "+name, fmt.Sprintf("%d proven, and equal to brute force, %.1f s", same, took.Seconds()), fmt.Sprintf("all %d", len(problems)), same == len(problems))
	return nil
}

// brute finds the least peak of a problem by trying the buffers in every order of their offsets.
type brute struct {
	p           *dsa.Problem
	offset      []int64
	placed      []bool
	best, bound int64
}

func newBrute(p *dsa.Problem) *brute {
	b := &brute{p: p, offset: make([]int64, p.Len()), placed: make([]bool, p.Len())}
	for i, size := range p.Size {
		b.best += size
		load := int64(0) // when i is born, as it is greatest at a birth
		for j := range p.Size {
			if p.Start[j] <= p.Start[i] && p.Start[i] < p.End[j] {
				load += p.Size[j]
			}
		}
		b.bound = max(b.bound, load)
	}
	return b
}

// place tries every buffer that is left, each as low as those that are placed let it, but no lower than the last of them.
func (b *brute) place(count int, last, peak int64) {
	if peak >= b.best || b.best == b.bound {
		return
	}
	if count == b.p.Len() {
		b.best = peak
		return
	}
	for i := range b.placed {
		if b.placed[i] {
			continue
		}
		if at := b.lowest(i); at >= last {
			b.placed[i], b.offset[i] = true, at
			b.place(count+1, at, max(peak, at+b.p.Size[i]))
			b.placed[i] = false
		}
	}
}

// lowest returns the offset of a buffer on top of all that are placed and live at one time with it.
func (b *brute) lowest(i int) int64 {
	p, at := b.p, int64(0)
	for j, placed := range b.placed {
		if placed && p.Start[i] < p.End[j] && p.Start[j] < p.End[i] {
			at = max(at, b.offset[j]+p.Size[j])
		}
	}
	return at
}
