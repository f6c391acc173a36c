package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// exactResults is what experiments/programs/exact.py measured on an H200: a row for each program and way of running it.
const exactResults = "experiments/programs/results/exact-h200.csv"

// exactWarmUp is how many steps are left out of medians: those in which all is new.
const exactWarmUp = 3

// measureExact adds the small programs under limits: whether they end within them with PyTorch's losses, and their steps beside PyTorch's.
func measureExact(e *experiment) error {
	f, err := os.Open(exactResults)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma = ';'
	rows, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("read %s: %w", exactResults, err)
	}
	plain, losses := 0.0, [2]string{} // of PyTorch's own runs of the program
	for i, row := range rows[1:] {
		field := func(name string) string { return row[slices.Index(rows[0], name)] }
		switch way := field("way"); {
		case strings.HasPrefix(way, "torch"):
			median, err := medianStep(field("steps"))
			if err != nil {
				return fmt.Errorf("read %s: row %d: %w", exactResults, i+1, err)
			}
			if way == "torch" {
				plain, losses[0] = median, field("losses")
			}
			plain, losses[1] = min(plain, median), field("losses")
		case strings.HasPrefix(way, "gmswap"):
			if err := addLimited(e, field, plain, losses); err != nil {
				return fmt.Errorf("read %s: row %d: %w", exactResults, i+1, err)
			}
		}
	}
	return nil
}

// addLimited adds a run under a limit.
func addLimited(e *experiment, field func(string) string, plain float64, losses [2]string) error {
	name := fmt.Sprintf("%s, %s %%", field("program"), field("way"))
	if why, _, _ := strings.Cut(field("ok"), ":"); why != "yes" {
		e.add(name, why, "ends", false)
		return nil
	}
	step, err := medianStep(field("steps"))
	if err != nil {
		return err
	}
	reserved, err := strconv.ParseFloat(field("reserved"), 64)
	if err != nil {
		return err
	}
	limit, err := strconv.ParseFloat(field("limit"), 64)
	if err != nil {
		return err
	}
	got, met := fmt.Sprintf("%.3f of the limit, a step %.2f of PyTorch's", reserved/limit, step/plain), reserved <= limit
	if strings.Contains(field("said"), "on the host") {
		got += ", some on the host"
	}
	switch {
	case losses[0] != losses[1]:
		got += "; losses vary in PyTorch itself"
	case field("losses") != losses[0]:
		got, met = got+"; other losses", false
	}
	e.add(name, got, "ends within it, PyTorch's losses", met)
	return nil
}

// medianStep returns the median of times, behind the first ones.
func medianStep(text string) (float64, error) {
	words := strings.Fields(text)
	if len(words) <= exactWarmUp {
		return 0, fmt.Errorf("%d steps are too few", len(words))
	}
	var steps []float64
	for _, word := range words[exactWarmUp:] {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return 0, err
		}
		steps = append(steps, v)
	}
	slices.Sort(steps)
	return (steps[(len(steps)-1)/2] + steps[len(steps)/2]) / 2, nil
}
