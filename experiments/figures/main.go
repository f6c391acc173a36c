// Figures measures what gm promises and prints each figure beside its target. Its arguments are what to measure; the
// environment variable TRACES lists folders of PyTorch snapshots, *.pickle.gz, and traces, *.parquet, to measure it on, and GM_SHARED names
// a folder whose folder dsa has instances, *.csv and *.csv.gz.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gm/internal/report"
)

// figure is something that can be measured.
type figure struct {
	name    string
	measure func(e *experiment) error
	traces  bool // it is measured on those
}

func figures() []figure {
	return []figure{
		{"import", measureImport, true},
		{"fidelity", measureFidelity, true},
		{"expandable", measureExpandable, true},
		{"replay", measureReplay, true},
		{"plan", measurePlan, true},
		{"capture", measureCapture, true},
		{"bilevel", measureBilevel, false},
		{"scale", measureScale, false},
		{"tails", measureTails, false},
		{"tail", measureTail, false},
		{"choose-planted", choosePlanted, false},
		{"fit", measureFit, false},
		{"lowest", measureLowest, false},
		{"large", measureLarge, false},
		{"small", measureSmall, false},
		{"threads", measureThreads, false},
		{"stitch", measureStitch, true},
		{"gmlake", measureGMLake, true},
		{"frontier", measureFrontier, true},
		{"variations", measureVariations, true},
		{"planned", measurePlanned, true},
		{"why", measureWhy, true},
		{"synth", measureSynth, true},
		{"estimate", measureEstimate, true},
		{"look", measureLook, true},
		{"latency", measureLatency, false},
		{"footprint", measureFootprint, false},
		{"tune", measureTune, true},
		{"report", measureReport, true},
		{"memo", measureMemo, false},
		{"dymem", measureDymem, false},
		{"workspaces", measureWorkspaces, false},
		{"swap", measureSwap, false},
		{"programs", measurePrograms, false},
		{"order", measureOrder, false},
		{"remat", measureRemat, false},
		{"auto", measureAuto, false},
		{"compiled", measureCompiled, false},
		{"fleet", measureFleet, false},
		{"fleet-sample", sampleFleet, false},
		{"fleet-ranks", (*experiment).measureFleetRanks, false},
		{"sweep", measureSweep, false},
	}
}

// experiment is what the figures are measured on, and the table that they go to.
type experiment struct {
	dir    string // for files that are made on the way
	traces []sample
	table  report.Table
	missed bool
}

// sample is a snapshot and the trace that was made of it.
type sample struct {
	name     string
	snapshot string // empty if there is only the trace
	trace    string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "figures: %v\n", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	e := &experiment{table: report.Table{Titles: []string{"figure", "measured", "target", ""}}}
	var err error
	if e.dir, err = os.MkdirTemp("", "gm-figures-*"); err != nil {
		return err
	}
	defer os.RemoveAll(e.dir)
	for _, name := range names {
		i := slices.IndexFunc(figures(), func(f figure) bool { return f.name == name })
		if i < 0 {
			return fmt.Errorf("there is no figure %q", name)
		}
		if figures()[i].traces && e.traces == nil {
			if err := e.find(); err != nil {
				return err
			}
		}
		if err := figures()[i].measure(e); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(e.table.Rows) == 0 {
		return fmt.Errorf("nothing in TRACES=%q to measure %v on", os.Getenv("TRACES"), names)
	}
	if err := e.table.Write(os.Stdout); err != nil {
		return err
	}
	if e.missed {
		return fmt.Errorf("a target was missed")
	}
	return nil
}

// find lists the snapshots and imports them.
func (e *experiment) find() error {
	for _, folder := range filepath.SplitList(os.Getenv("TRACES")) {
		files, err := filepath.Glob(filepath.Join(folder, "*.pickle.gz"))
		if err != nil {
			return err
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".pickle.gz")
			s := sample{name, file, filepath.Join(e.dir, name+".parquet")}
			if _, err := gmtraceImport(s.snapshot, s.trace); err != nil {
				return err
			}
			e.traces = append(e.traces, s)
		}
		if files, err = filepath.Glob(filepath.Join(folder, "*.parquet")); err != nil {
			return err
		}
		for _, file := range files {
			e.traces = append(e.traces, sample{strings.TrimSuffix(filepath.Base(file), ".parquet"), "", file})
		}
	}
	if len(e.traces) == 0 {
		return fmt.Errorf("no *.pickle.gz and no *.parquet in TRACES=%q", os.Getenv("TRACES"))
	}
	return nil
}

// add adds a figure to the table. One without a target is for information.
func (e *experiment) add(name, measured, target string, met bool) {
	verdict := "met"
	switch {
	case !met:
		verdict = "MISSED"
		e.missed = true
	case target == "":
		verdict = ""
	}
	e.table.Add(name, measured, target, verdict)
}
