package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byHandResults is what experiments/swap/byhand.py measured on H200s: a row for each way to run a program.
const byHandResults = "experiments/swap/results/byhand.csv"

// byHandTargets are steps under gmswap, of plain PyTorch's, by program and limit; with none nothing is moved.
var byHandTargets = map[string]float64{"vit 17GB": 1.08, "vit 8.9GB": 1.25, "vit none": 1.01, "hf 17GB": 1.08, "hf none": 1.01}

// measureByHand adds steps under gmswap beside those with the checkpoints of libraries, the median against PyTorch's steps of the same turns.
func measureByHand(e *experiment) error {
	rows, err := readTable(byHandResults)
	if err != nil {
		return err
	}
	const program, way, allocated, median = 0, 1, 3, 6
	byHand := ""
	for _, r := range rows[1:] {
		bytes, err := strconv.ParseFloat(r[allocated], 64)
		if err != nil {
			return fmt.Errorf("read %s: %w", byHandResults, err)
		}
		step, err := strconv.ParseFloat(r[median], 64)
		if err != nil {
			return fmt.Errorf("read %s: %w", byHandResults, err)
		}
		took := fmt.Sprintf("%.3f in %.1f GB", step, bytes/1e9)
		if r[way] == "by hand" {
			byHand = took
		}
		limit, ok := strings.CutPrefix(r[way], "gmswap ")
		if !ok {
			continue
		}
		name := r[program] + " " + limit
		target := byHandTargets[name]
		e.add("swap: "+name+", step", took+"; by hand "+byHand, fmt.Sprintf("%.2f", target), step <= target)
	}
	return nil
}
