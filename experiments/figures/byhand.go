package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// byHandResults is what experiments/swap/byhand.py measured on H200s: a row for each way to run a program.
const byHandResults = "experiments/swap/results/byhand.csv"

// byHandTargets are steps under gmswap, of plain PyTorch's, by program and limit; with none nothing is moved.
var byHandTargets = map[string]float64{"vit 17GB": 1.08, "vit 8.9GB": 1.25, "vit none": 1.01, "hf 17GB": 1.08, "hf none": 1.01}

// byHandZoo has other programs with settings, whose limits are what checkpoints by hand have allocated and a 50th. mappingResults are steps of two of them: what
// calls of CUDA's driver for memory took (gm_get_stats before and behind each step).
const (
	byHandZoo      = "experiments/swap/results/byhand-zoo-h200.csv"
	mappingResults = "experiments/swap/results/mapping-h200.csv"
)

// measureByHand adds steps under gmswap beside those with the checkpoints of libraries, the median against PyTorch's steps of the same turns.
func measureByHand(e *experiment) error {
	rows, err := readTable(byHandResults)
	if err != nil {
		return err
	}
	const program, way, allocated, median = 0, 1, 3, 6
	byHand := ""
	for _, r := range rows[1:] {
		v, err := floats(r, allocated, median)
		if err != nil {
			return fmt.Errorf("read %s: %w", byHandResults, err)
		}
		bytes, step := v[0], v[1]
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
	if err := measureByHandZoo(e); err != nil {
		return err
	}
	return measureMapping(e)
}

// measureByHandZoo adds steps of architectures of libraries, which are to take no longer than with the checkpoints that these offer.
func measureByHandZoo(e *experiment) error {
	rows, err := readTable(byHandZoo)
	if err != nil {
		return err
	}
	const program, way, allocated, reserved, median = 0, 1, 3, 4, 6
	least, by := 0.0, ""
	for _, r := range rows[1:] {
		v, err := floats(r, allocated, reserved, median)
		if err != nil {
			return fmt.Errorf("read %s: %w", byHandZoo, err)
		}
		in, step := fmt.Sprintf(" in %.2f GB, %.2f times that taken", v[0]/1e9, v[1]/v[0]), v[2]
		switch {
		case r[way] == "by hand":
			least, by = step, fmt.Sprintf("%.3f by hand", step)+in
		case strings.HasPrefix(r[way], "gmswap "):
			e.add("swap: "+r[program]+", step", fmt.Sprintf("%.3f", step)+in, by, step <= least)
		}
	}
	return nil
}

// measureMapping adds the part of steps that calls of the driver for memory take.
func measureMapping(e *experiment) error {
	rows, err := readTable(mappingResults)
	if err != nil {
		return err
	}
	const program, stepMS, driverMS, stitches = 0, 2, 3, 5
	parts, pieces, order := map[string][]float64{}, map[string][]float64{}, []string{}
	for i, r := range rows[1:] {
		v, err := floats(r, stepMS, driverMS, stitches)
		if err != nil {
			return fmt.Errorf("read %s: row %d: %w", mappingResults, i, err)
		}
		if parts[r[program]] == nil {
			order = append(order, r[program])
		}
		parts[r[program]], pieces[r[program]] = append(parts[r[program]], v[1]/v[0]), append(pieces[r[program]], v[2])
	}
	for _, name := range order {
		slices.Sort(parts[name])
		slices.Sort(pieces[name])
		n := len(parts[name])
		e.add("swap: "+name+", calls of the driver for memory", fmt.Sprintf("%s of a step in the median of %d, at most %s; %.0f requests stitched in the median",
			part(parts[name][n/2]), n, part(parts[name][n-1]), pieces[name][n/2]), "", true)
	}
	return nil
}

// floats returns the numbers in some columns of a row.
func floats(row []string, columns ...int) ([]float64, error) {
	found := make([]float64, len(columns))
	for i, column := range columns {
		var err error
		if found[i], err = strconv.ParseFloat(row[column], 64); err != nil {
			return nil, err
		}
	}
	return found, nil
}
