package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"

	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/replay"
)

// measureFidelity replays PyTorch's allocator on every recording and compares each segment and each block.
func measureFidelity(e *experiment) error {
	for _, s := range e.traces {
		verdicts, err := verify(s.trace)
		if err != nil {
			return err
		}
		for _, v := range verdicts {
			measured := fmt.Sprintf("%d blocks, %d segment rows, peak %d", v.Allocs, v.Segments, v.PeakReplayed)
			if v.Divergence != nil {
				measured = v.Divergence.Error()
			}
			e.add("fidelity "+s.name, measured, fmt.Sprintf("identical, peak %d", v.PeakRecorded),
				v.Divergence == nil && v.PeakRecorded == v.PeakReplayed)
		}
	}
	return nil
}

func verify(file string) (verdicts []replay.Verdict, err error) {
	r, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return replay.Verify(r, 0)
}

// expandableError is how far the peak of expandable_segments may be from what PyTorch reserved in a run of its own.
const expandableError = 0.005

// measureExpandable compares the peak reserved with expandable_segments to that of the same training script run with it.
func measureExpandable(e *experiment) error {
	recorded, err := readPeaks("experiments/expandable.csv")
	if err != nil {
		return err
	}
	specs, err := bench.ParseSpecs("expandable")
	if err != nil {
		return err
	}
	for _, s := range e.traces {
		want, ok := recorded[s.name]
		if !ok {
			continue
		}
		delete(recorded, s.name)
		programs, err := replay.Open(s.trace)
		if err != nil {
			return err
		}
		rows, err := bench.Compare(context.Background(), programs, specs, 0, func() {})
		if err != nil {
			return err
		}
		off := float64(rows[0].PeakReserved-want) / float64(want)
		e.add("expandable "+s.name, fmt.Sprintf("%d, %+.3f%%", rows[0].PeakReserved, 100*off),
			fmt.Sprintf("%d within %.1f%%", want, 100*expandableError), math.Abs(off) <= expandableError)
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		e.table.Add("expandable "+name, "not in TRACES", fmt.Sprintf("%d within %.1f%%", recorded[name], 100*expandableError), "not measured")
	}
	return nil
}

// readPeaks reads a CSV of traces and bytes, with a header.
func readPeaks(file string) (map[string]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	peaks := map[string]int64{}
	for _, row := range rows[1:] {
		if peaks[row[0]], err = strconv.ParseInt(row[1], 10, 64); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return peaks, nil
}
