package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gm/internal/bench"
	"gm/internal/bench/replay"
)

// variationSeeds is how many variations are made of each recording.
const variationSeeds = 6

// steady is the share of a recording's length from which on a tensor counts as a lasting one.
const steady = 1.0 / 3

// measureVariations replays variations of the recordings, which no setting was chosen by.
func measureVariations(e *experiment) error {
	programs, err := e.programs(recordedPrograms)
	if err != nil {
		return err
	}
	var all []*replay.Program
	for _, p := range programs {
		for seed := range uint64(variationSeeds) {
			if len(p.Initial) == 0 { // else its sizes are those of segments
				all = append(all, variation(p, seed))
			}
		}
	}
	specs, err := bench.ParseSpecs("stitch,expandable")
	if err != nil {
		return err
	}
	rows, err := bench.Compare(context.Background(), all, specs, 0, func() {})
	if err != nil {
		return err
	}
	var utilisations, shares []float64
	mean, above := 0.0, 0
	for i := range all {
		own, other := &rows[2*i], &rows[2*i+1]
		utilisations, shares = append(utilisations, own.Utilisation), append(shares, own.DriverShare)
		mean += math.Log(own.Utilisation)
		if own.PeakReserved > other.PeakReserved {
			above++
		}
	}
	slices.Sort(utilisations)
	slices.Sort(shares)
	n := len(all)
	below, _ := slices.BinarySearch(utilisations, stitchUtilisation)
	mean = math.Exp(mean / float64(n))
	e.add("variations: utilisation, geometric mean", fmt.Sprintf("%.4f of %d", mean, n), fmt.Sprintf("%.2f", stitchMeanUtilisation), mean >= stitchMeanUtilisation)
	e.add("variations: utilisation, worst", fmt.Sprintf("%.4f; 1 %% are at most %.4f; %d below %.2f", utilisations[0], utilisations[n/100], below, stitchUtilisation),
		fmt.Sprintf("%.2f", stitchUtilisation), below == 0)
	e.add("variations: more than expandable", fmt.Sprint(above), "0", above == 0)
	e.table.Add("variations: driver, share of all of the run", fmt.Sprintf("median %.1f %%, 99 %% are at most %.1f %%", 100*shares[n/2], 100*shares[n*99/100]), "", "")
	return nil
}

// variation returns a program with other sizes: in each of 13 parts of its length all are scaled by a factor between 0.45 and 1.75, those of
// lasting tensors each by up to 10 %.
func variation(p *replay.Program, seed uint64) *replay.Program {
	rng := rand.New(rand.NewPCG(seed, 77))
	var factors [13]float64
	for i := range factors {
		factors[i] = 0.45 + 1.3*rng.Float64()
	}
	v := *p
	v.Name = fmt.Sprintf("%s, variation %d", p.Name, seed)
	v.Sizes, v.Segments = slices.Clone(p.Sizes), nil
	born, length := lengths(p)
	for i := range v.Sizes {
		factor := factors[len(factors)*born[i]/(p.Steps()+1)]
		if float64(length[i]) > steady*float64(p.Steps()) {
			factor = 0.9 + 0.2*rng.Float64()
		}
		v.Sizes[i] = max(1, int64(float64(v.Sizes[i])*factor))
	}
	return &v
}

// lengths returns the step at which each tensor is requested, and how many steps it lives.
func lengths(p *replay.Program) (born, length []int) {
	born, length = make([]int, len(p.Sizes)), make([]int, len(p.Sizes))
	for i := range length {
		length[i] = p.Steps()
	}
	for i, kind := range p.Kinds {
		switch kind {
		case replay.Alloc:
			born[p.Tensors[i]] = i
		case replay.Free, replay.Request:
			length[p.Tensors[i]] = i - born[p.Tensors[i]]
		}
	}
	return born, length
}
