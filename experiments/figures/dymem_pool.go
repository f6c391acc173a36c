package main

import (
	"context"
	"fmt"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/swap/gtbm"
	"gm/internal/swap/lifetimes"
)

// dymemPools compares layouts of all networks, in the least memory of a policy each.
type dymemPools struct {
	grouped, solved     gains // over best fit, under Dymem
	inception, residual pools // of the networks of which the text gives peaks
}

// pools are the bytes of vDNN's with best fit, and of Dymem's grouped by mobility.
type pools struct{ vdnn, dymem int64 }

// less returns the part that Dymem's pool saves, and both in words.
func (p pools) less() (float64, string) {
	part := float64(p.dymem)/float64(p.vdnn) - 1
	return -part, fmt.Sprintf("%s -> %s MiB, %s", mebibytes(p.vdnn), mebibytes(p.dymem), percent(part))
}

// add lays out what is on the device under vDNN and under Dymem. It returns the cells of a row.
func (p *dymemPools) add(spec string, vdnn, dymem *dymemRun) ([]string, error) {
	var cells []string
	var sizes []int64
	for _, pool := range []struct {
		run  *dymemRun
		size func(*dymemRun) (int64, error)
	}{{vdnn, bestFit}, {dymem, bestFit}, {dymem, grouped}, {dymem, solved}} {
		bytes, err := pool.size(pool.run)
		if err != nil {
			return nil, err
		}
		cells, sizes = append(cells, mebibytes(bytes)), append(sizes, bytes)
	}
	switch both := (pools{sizes[0], sizes[2]}); spec {
	case inceptionNet:
		p.inception = both
	case residualNet:
		p.residual = both
	}
	p.grouped.add(float64(sizes[2])/float64(sizes[1]) - 1)
	p.solved.add(float64(sizes[3])/float64(sizes[1]) - 1)
	return cells, nil
}

// report adds what the paper promises of layouts to the figures.
func (p *dymemPools) report(e *experiment) {
	inception, text := p.inception.less()
	e.add("dymem: pool of Inception-v4, vDNN by best fit -> Dymem grouped", text, "3650 -> 2527 MB, -31 %", inception >= 1-2527.0/3650)
	residual, text := p.residual.less()
	e.add("dymem: pool of ResNet-32, vDNN by best fit -> Dymem grouped", text, "2500 -> 1854 MB, -26 %", residual >= 1-1854.0/2500)
	e.add("dymem: pool grouped by mobility, over best fit", p.grouped.String(), "less", p.grouped.most < 0)
	e.add("dymem: pool as gmplan lays it out, over best fit", p.solved.String(), "", true)
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
