package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"gm/internal/models/graphs"
	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/gtbm"
	"gm/internal/swap/policy"
)

// Table 2 of the paper: how many steps of ResNet-101 fail, in percent, by the reserve beta of the pool, in MB.
const betaNet = "resnet-101,batch=100"

var (
	betas        = []int64{100, 300, 500}
	betaFailures = []float64{5, 0.9, 0}
	betaJitter   = []float64{0.05, 0.2, 0.5, 1} // of a copy's time, more at most; the paper does not say what varies
)

// betaSteps is how many steps are tried.
const betaSteps = 400

// unsteady is a link whose copies out each take a random part longer, up to jitter.
type unsteady struct {
	bandwidth
	jitter float64
	random *rand.Rand
}

// OutTime implements swap.Copier.
func (u unsteady) OutTime(bytes int64) time.Duration {
	return time.Duration(float64(u.bandwidth.OutTime(bytes)) * (1 + u.jitter*u.random.Float64()))
}

// dymemBeta is table 2, with copies that vary: Dymem frees a tensor when its copy has ended, so that steps differ in what is in use when.
func dymemBeta(e *experiment) error {
	table := report.Table{Titles: []string{"table 2: failures in 100 steps, by jitter of copies", "main space, MiB", "most that a step needs"}}
	for _, beta := range betas {
		table.Titles = append(table.Titles, fmt.Sprintf("beta %d MiB", beta))
	}
	m, err := graphs.Build(betaNet)
	if err != nil {
		return err
	}
	rates := make([]gains, len(betas))
	for _, jitter := range betaJitter {
		needs, err := betaNeeds(m, jitter)
		if err != nil {
			return fmt.Errorf("%s: %w", betaNet, err)
		}
		row := []string{percent(jitter), mebibytes(needs[0]), mebibytes(slices.Max(needs))}
		for i, beta := range betas {
			failures := 100 * float64(gtbm.Trials(needs, beta<<20)) / betaSteps
			rates[i].add(failures)
			row = append(row, fmt.Sprintf("%.2f", failures))
		}
		table.Add(row...)
	}
	for i, beta := range betas {
		e.add(fmt.Sprintf("dymem: steps of ResNet-101 that fail with a beta of %d MB, by jitter", beta),
			fmt.Sprintf("%.2f %% to %.2f %%", rates[i].least, rates[i].most), fmt.Sprintf("%.1f %%", betaFailures[i]), rates[i].most <= betaFailures[i])
	}
	return table.Write(os.Stdout)
}

// betaNeeds returns the bytes of the main space that each of some steps needs.
func betaNeeds(m *graphs.Model, jitter float64) ([]int64, error) {
	p, err := policy.Lookup("dymem")
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 0))
	var needs []int64
	for range betaSteps {
		s, err := p.Plan(m.Graph, swap.Limits{Device: dymemDevice, Host: dymemHost, Link: unsteady{dymemLink, jitter, random}})
		if err != nil {
			return nil, err
		}
		step, err := (&dymemRun{model: m, actions: s.Actions}).lives()
		if err != nil {
			return nil, err
		}
		pool, err := gtbm.Place(context.Background(), m.Graph, step, 1, 0)
		if err != nil {
			return nil, err
		}
		needs = append(needs, pool.Main)
	}
	return needs, nil
}
