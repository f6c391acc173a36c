package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// programResults is what experiments/programs/run.py measured on an H200, and of ddp on two H100s: a row for each run.
const programResults = "experiments/programs/results/programs.csv"

// What gmstitch must come to on each program, and in geometric mean.
const (
	programUtilisation     = 0.98
	programMeanUtilisation = 0.99
	programStep            = 1.000 // of the faster of PyTorch's two allocators: the median of steps made in turns, and all steps together
	programLongest         = 1.05  // the longest step, in which shapes are new
)

// The modes of run.py.
const (
	ownDefault    = "default"
	ownExpandable = "expandable"
	underGmstitch = "gmstitch"
)

// programRuns are the runs of a program in one mode.
type programRuns struct {
	failed string
	rounds map[string]programRun // by round: rounds differ in their number of steps
}

// programRun is one run: bytes at the peak, and seconds.
type programRun struct {
	allocated, reserved float64
	steps               []float64
}

// add counts a run.
func (r *programRuns) add(field func(string) string) error {
	if ok := field("ok"); ok != "yes" {
		r.failed = ok
		return nil
	}
	var err error
	number := func(text string) float64 {
		v, e := strconv.ParseFloat(text, 64)
		if e != nil && err == nil {
			err = e
		}
		return v
	}
	run := programRun{allocated: number(field("allocated")), reserved: number(field("reserved"))}
	for _, word := range strings.Fields(field("steps")) {
		run.steps = append(run.steps, number(word))
	}
	if r.rounds == nil {
		r.rounds = map[string]programRun{}
	}
	r.rounds[field("round")] = run
	return err
}

// against returns the median of the ratios of steps to those of another mode which were made in the same turn, but for the first of a run.
func (r *programRuns) against(other *programRuns) float64 {
	var ratios []float64
	for round, run := range r.rounds {
		for i := 1; i < min(len(run.steps), len(other.rounds[round].steps)); i++ {
			ratios = append(ratios, run.steps[i]/other.rounds[round].steps[i])
		}
	}
	slices.Sort(ratios)
	n := len(ratios)
	if n == 0 {
		return math.NaN()
	}
	return (ratios[(n-1)/2] + ratios[n/2]) / 2
}

// best returns the seconds of each step, the least of some rounds.
func (r *programRuns) best(rounds []string) (best []float64) {
	for _, round := range rounds {
		for i, s := range r.rounds[round].steps {
			if i == len(best) {
				best = append(best, s)
			}
			best[i] = min(best[i], s)
		}
	}
	return best
}

// roundsOfAll returns the rounds in which each mode ran: the least of more runs is less.
func roundsOfAll(modes ...*programRuns) (rounds []string) {
	for round := range modes[0].rounds {
		if !slices.ContainsFunc(modes, func(r *programRuns) bool { return len(r.rounds[round].steps) == 0 }) {
			rounds = append(rounds, round)
		}
	}
	slices.Sort(rounds)
	return rounds
}

func sum(all []float64) (total float64) {
	for _, x := range all {
		total += x
	}
	return total
}

// measurePrograms compares gmstitch with PyTorch's allocators on programs of popular libraries, from the runs that are kept.
func measurePrograms(e *experiment) error {
	programs, names, err := readPrograms(programResults)
	if err != nil {
		return err
	}
	mean, n := 0.0, 0
	for _, name := range names {
		modes := programs[name]
		gm, torch, expandable := modes[underGmstitch], modes[ownDefault], modes[ownExpandable]
		if gm != nil && gm.failed != "" {
			e.add("programs: "+name, "failed: "+gm.failed, "runs", false)
			continue
		}
		if gm == nil || torch == nil || expandable == nil || len(roundsOfAll(gm, torch, expandable)) == 0 {
			e.table.Add("programs: "+name, "not run in all modes", "", "not measured")
			continue
		}
		mean += math.Log(e.program(name, gm, torch, expandable))
		n++
	}
	mean = math.Exp(mean / float64(n))
	e.add("programs: geometric mean", fmt.Sprintf("utilisation %.4f", mean), fmt.Sprintf("%.2f", programMeanUtilisation), mean >= programMeanUtilisation)
	return measureExact(e)
}

// worst returns the round in which gmstitch's memory was used least well, and whether it took no more than expandable_segments in any round.
func (r *programRuns) worst(expandable *programRuns, rounds []string) (round string, held bool) {
	held = true
	for _, name := range rounds {
		run := r.rounds[name]
		if round == "" || run.utilisation() < r.rounds[round].utilisation() {
			round = name
		}
		held = held && run.reserved <= expandable.rounds[name].reserved
	}
	return round, held
}

func (r programRun) utilisation() float64 { return r.allocated / r.reserved }

// program adds what one takes, memory, then time, and returns its utilisation in the worst round.
func (e *experiment) program(name string, gm, torch, expandable *programRuns) float64 {
	const gb = 1e9
	rounds := roundsOfAll(gm, torch, expandable)
	round, held := gm.worst(expandable, rounds)
	utilisation := gm.rounds[round].utilisation()
	above := ""
	if !held {
		above = "; above expandable in a round"
	}
	e.add("programs: "+name+", memory", fmt.Sprintf("%.4f in use; %.2f GB, expandable %.2f, torch %.2f%s", utilisation,
		gm.rounds[round].reserved/gb, expandable.rounds[round].reserved/gb, torch.rounds[round].reserved/gb, above),
		fmt.Sprintf("%.2f, as expandable", programUtilisation), utilisation >= programUtilisation && held)
	steps, least, other := gm.best(rounds), torch.best(rounds), expandable.best(rounds)
	longest := slices.Max(steps) / min(slices.Max(least), slices.Max(other))
	faster := torch
	if sum(other) < sum(least) {
		faster, least = expandable, other
	}
	median, total := gm.against(faster), sum(steps)/sum(least)
	e.add("programs: "+name+", steps", fmt.Sprintf("median %.3f, all %.3f, longest %.3f; %d runs each", median, total, longest, len(rounds)),
		fmt.Sprintf("%.3f, %.3f, %.2f", programStep, programStep, programLongest), median <= programStep && total <= programStep && longest <= programLongest)
	return utilisation
}

// readPrograms returns the runs by program and mode, and the programs in the order of the file.
func readPrograms(path string) (programs map[string]map[string]*programRuns, names []string, err error) {
	rows, err := readTable(path)
	if err != nil {
		return nil, nil, err
	}
	programs = map[string]map[string]*programRuns{}
	for i, row := range rows[1:] {
		field := func(name string) string { return row[slices.Index(rows[0], name)] }
		name, mode := field("program"), field("mode")
		if programs[name] == nil {
			programs[name] = map[string]*programRuns{}
			names = append(names, name)
		}
		if programs[name][mode] == nil {
			programs[name][mode] = &programRuns{}
		}
		if err := programs[name][mode].add(field); err != nil {
			return nil, nil, fmt.Errorf("read %s: row %d: %w", path, i+1, err)
		}
	}
	return programs, names, nil
}
