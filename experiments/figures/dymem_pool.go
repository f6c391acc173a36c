package main

import (
	"context"
	"errors"
	"fmt"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/swap/gtbm"
	"gm/internal/swap/lifetimes"
)

// dymemPools compares layouts of all networks, in the least memory of a policy each.
type dymemPools struct {
	grouped, solved gains // over best fit, under Dymem
}

// add lays out what is on the device under vDNN and under Dymem. It returns the cells of a row.
func (p *dymemPools) add(vdnn, dymem *dymemRun) ([]string, error) {
	var cells []string
	var sizes []int64
	for _, pool := range []struct {
		run  *dymemRun
		size func(*dymemRun) (int64, error)
	}{{vdnn, bestFit}, {dymem, bestFit}, {dymem, grouped}, {dymem, solved}} {
		if pool.run == nil {
			return nil, errors.New("vDNN or Dymem finds no schedule in the least memory")
		}
		bytes, err := pool.size(pool.run)
		if err != nil {
			return nil, err
		}
		cells, sizes = append(cells, mebibytes(bytes)), append(sizes, bytes)
	}
	p.grouped.add(float64(sizes[2])/float64(sizes[1]) - 1)
	p.solved.add(float64(sizes[3])/float64(sizes[1]) - 1)
	return cells, nil
}

// report adds what the paper promises of layouts to the figures.
func (p *dymemPools) report(e *experiment) {
	e.add("dymem: pool grouped by mobility, over best fit", p.grouped.String(), "less", p.grouped.most < 0)
	e.add("dymem: pool as gmplan lays it out, over best fit", p.solved.String(), "less", p.solved.most < 0)
}

// lives returns what is on the device during a step: its tensors, what is beside them, and what is always in use.
func (r *dymemRun) lives() (*lifetimes.Step, error) {
	beside := []lifetimes.Beside{{Bytes: r.model.Always, Made: -1, Last: int32(len(r.model.Graph.Ops))}}
	for _, t := range r.model.Temporaries {
		beside = append(beside, lifetimes.Beside{Bytes: t.Bytes, Made: t.Made, Last: t.Last})
	}
	return lifetimes.Of(r.model.Graph, r.actions, beside)
}

// laidOut returns the bytes of a pool in which a solver of package dsa places everything.
func (r *dymemRun) laidOut(solver string) (int64, error) {
	step, err := r.lives()
	if err != nil {
		return 0, err
	}
	s, err := solvers.Lookup(solver)
	if err != nil {
		return 0, err
	}
	l, err := s.Solve(context.Background(), step.Problem(1), dsa.Options{})
	return l.Peak, err
}

func bestFit(r *dymemRun) (int64, error) { return r.laidOut("best-fit") }
func solved(r *dymemRun) (int64, error)  { return r.laidOut("auto") }

// grouped returns the bytes of a pool in which tensors are grouped by mobility.
func grouped(r *dymemRun) (int64, error) {
	step, err := r.lives()
	if err != nil {
		return 0, err
	}
	p, err := gtbm.Place(context.Background(), r.model.Graph, step, 1, 0)
	if err != nil {
		return 0, fmt.Errorf("group by mobility: %w", err)
	}
	return p.Main + p.Incremental, nil
}
