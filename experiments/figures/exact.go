package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// exactResults and the others are what experiments/programs/exact.py measured on an H200: a row for each program and way of running it.
const (
	exactResults   = "experiments/programs/results/exact-h200.csv"
	weightsResults = "experiments/programs/results/weights-h200.csv"    // programs of whose memory parameters are the most, one at a time
	recomputedRows = "experiments/programs/results/recomputed-h200.csv" // programs of which much is recomputed of dropouts' masks and of arguments of modules
	zooResults     = "experiments/programs/results/zoo-h200.csv"
)

// exactWarmUp is how many steps are left out of medians: those in which all is new.
const exactWarmUp = 3

// exactRow is a run of a program: its fields by name.
type exactRow map[string]string

// exactProgram is a program that was run in several ways.
type exactProgram struct {
	limited []exactRow
	stitch  exactRow // nil where it was not run
	plain   float64  // the median step of PyTorch's own allocator, in seconds
	losses  []string // of its runs
}

// measureExact adds the small programs under limits: whether they end within them with PyTorch's losses, and their steps beside PyTorch's.
func measureExact(e *experiment) error {
	for _, path := range []string{exactResults, weightsResults, recomputedRows} {
		programs, err := readExact(path)
		if err != nil {
			return err
		}
		for _, p := range programs {
			for _, row := range p.limited {
				if err := p.addLimited(e, row); err != nil {
					return fmt.Errorf("read %s: %s: %w", path, row["program"], err)
				}
			}
		}
	}
	if err := measureWeights(e); err != nil {
		return err
	}
	if err := measureSplit(e); err != nil {
		return err
	}
	return measureZoo(e)
}

// measureWeights adds the longest steps of programs of whose memory parameters are the most, and the median ones that they had where parameters stay.
func measureWeights(e *experiment) error {
	programs, err := readExact(weightsResults)
	if err != nil {
		return err
	}
	before, err := readExact(zooResults)
	if err != nil {
		return err
	}
	then := map[string]string{}
	for _, p := range before {
		for _, row := range p.limited {
			step, err := medianStep(row["steps"])
			if err != nil {
				return fmt.Errorf("read %s: %s: %w", zooResults, row["program"], err)
			}
			then["zoo:name="+row["program"]+row["way"]] = fmt.Sprintf("; %.1f where parameters stay", step/p.plain)
		}
	}
	for _, p := range programs {
		for _, row := range p.limited {
			step, longest, err := steps(row["steps"])
			if err != nil {
				return fmt.Errorf("read %s: %s: %w", weightsResults, row["program"], err)
			}
			name := fmt.Sprintf("%s, %s %%: steps", row["program"], row["way"])
			e.add(name, fmt.Sprintf("%.1f of PyTorch's, %.0f ms; the longest %.2f s", step/p.plain, 1000*p.plain, longest)+then[row["program"]+row["way"]], "", true)
		}
	}
	return nil
}

// measureZoo adds how many runs of architectures under limits ended within them with PyTorch's losses, of those that PyTorch runs.
func measureZoo(e *experiment) error {
	programs, err := readExact(zooResults)
	if err != nil {
		return err
	}
	var n, vary, runs, good, denied int
	var ratios []float64 // of steps under limits to PyTorch's
	for _, p := range programs {
		n++
		own := p.varies()
		if own {
			vary++
		}
		rows := p.limited
		if p.stitch != nil {
			rows = append(rows, p.stitch)
		}
		for _, row := range rows {
			runs++
			within, err := row.within()
			if err != nil {
				return fmt.Errorf("read %s: %s: %w", zooResults, row["program"], err)
			}
			switch {
			case row.denied():
				denied++
			case row["ok"] == "yes" && within && (own || row["losses"] == p.losses[0]):
				good++
			}
		}
		for _, row := range p.limited {
			if row.denied() {
				continue
			}
			step, err := medianStep(row["steps"])
			if err != nil {
				return fmt.Errorf("read %s: %s: %w", zooResults, row["program"], err)
			}
			ratios = append(ratios, step/p.plain)
		}
	}
	slices.Sort(ratios)
	e.add("architectures of transformers, timm, torchvision and torchaudio, under gmstitch and limits",
		fmt.Sprintf("%d of %d runs of %d, %d more out of memory; the losses of %d vary in PyTorch itself; steps under limits %.1f in the median, at most %.1f",
			good, runs, n, denied, vary, ratios[len(ratios)/2], ratios[len(ratios)-1]), "all end within them, PyTorch's losses, or out of memory", good+denied == runs)
	return nil
}

// readExact returns the programs that ran with PyTorch's own allocator, in their order.
func readExact(path string) ([]*exactProgram, error) {
	rows, err := readTable(path)
	if err != nil {
		return nil, err
	}
	var programs []*exactProgram
	known := map[string]*exactProgram{}
	for i, fields := range rows[1:] {
		row := exactRow{}
		for j, name := range rows[0] {
			row[name] = fields[j]
		}
		name, way := row["program"], row["way"]
		p := known[name]
		if p == nil && way == "torch" && row["ok"] == "yes" {
			p = &exactProgram{plain: math.Inf(1)}
			known[name], programs = p, append(programs, p)
		}
		switch {
		case p == nil:
		case strings.HasPrefix(way, "torch") && row["ok"] == "yes":
			median, err := medianStep(row["steps"])
			if err != nil {
				return nil, fmt.Errorf("read %s: row %d: %w", path, i+1, err)
			}
			p.plain, p.losses = min(p.plain, median), append(p.losses, row["losses"])
		case strings.HasPrefix(way, "gmswap"):
			p.limited = append(p.limited, row)
		case way == "gmstitch":
			p.stitch = row
		}
	}
	return programs, nil
}

// within returns whether a run kept to its limit, if it had one.
func (row exactRow) within() (bool, error) {
	if row["ok"] != "yes" || row["limit"] == "0" {
		return row["ok"] == "yes", nil
	}
	reserved, err := strconv.ParseFloat(row["reserved"], 64)
	if err != nil {
		return false, err
	}
	limit, err := strconv.ParseFloat(row["limit"], 64)
	return reserved <= limit, err
}

// denied returns whether a run ended as its limit is too low.
func (row exactRow) denied() bool { return strings.HasPrefix(row["ok"], "OutOfMemoryError") }

// varies returns whether a program's losses are others in each run of PyTorch's own.
func (p *exactProgram) varies() bool {
	return slices.ContainsFunc(p.losses, func(l string) bool { return l != p.losses[0] })
}

// addLimited adds a run under a limit.
func (p *exactProgram) addLimited(e *experiment, row exactRow) error {
	name := fmt.Sprintf("%s, %s %%", row["program"], row["way"])
	if why, _, _ := strings.Cut(row["ok"], ":"); why != "yes" {
		e.add(name, why, "ends", false)
		return nil
	}
	step, err := medianStep(row["steps"])
	if err != nil {
		return err
	}
	met, err := row.within()
	if err != nil {
		return err
	}
	reserved, _ := strconv.ParseFloat(row["reserved"], 64)
	limit, _ := strconv.ParseFloat(row["limit"], 64)
	got := fmt.Sprintf("%.3f of the limit, a step %.2f of PyTorch's", reserved/limit, step/p.plain)
	if strings.Contains(row["said"], "on the host") {
		got += ", some on the host"
	}
	switch {
	case p.varies():
		got += "; losses vary in PyTorch itself"
	case row["losses"] != p.losses[0]:
		got, met = got+"; other losses", false
	}
	e.add(name, got, "ends within it, PyTorch's losses", met)
	return nil
}

// medianStep returns the median of times, behind the first ones.
func medianStep(text string) (float64, error) {
	median, _, err := steps(text)
	return median, err
}

// steps returns the median of times, behind the first ones, and the longest of all.
func steps(text string) (median, longest float64, err error) {
	words := strings.Fields(text)
	if len(words) <= exactWarmUp {
		return 0, 0, fmt.Errorf("%d steps are too few", len(words))
	}
	var all []float64
	for _, word := range words {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, v)
	}
	longest = slices.Max(all)
	late := all[exactWarmUp:]
	slices.Sort(late)
	return (late[(len(late)-1)/2] + late[len(late)/2]) / 2, longest, nil
}
