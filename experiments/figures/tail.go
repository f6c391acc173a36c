package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gm/internal/dsa"
	"gm/internal/models/layouts"
)

// Planted problems, with several seeds each, must be fitted in their capacity in so much processor time on one core: half of the runs, 99 in 100, and all.
const (
	tailMedian   = 100 * time.Millisecond
	tailMost     = 500 * time.Millisecond
	tailWorst    = 2 * time.Second
	tailPatience = 20 * time.Second
	tailSeeds    = 1 // the environment variable GM_SEEDS changes it
)

// measureTail solves the planted problems that were chosen, all of which google/minimalloc's search solves.
func measureTail(e *experiment) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	seeds := tailSeeds
	if text := os.Getenv("GM_SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil || seeds < 1 {
			return fmt.Errorf("GM_SEEDS=%q, expected a number of seeds", text)
		}
	}
	p, err := e.newPlanter()
	if err != nil {
		return err
	}
	var times []time.Duration
	lost := 0
	worst, slowest := time.Duration(0), ""
	for _, name := range strings.Fields(plantedNames) {
		problem, err := p.named(name)
		if err != nil {
			return err
		}
		for seed := 0; seed < seeds && problem != nil; seed++ {
			before := processorTime()
			l, _, err := solveFor(tailPatience, "auto", problem, dsa.Options{Capacity: layouts.PlantedCapacity, Workers: 1, Seed: uint64(seed)})
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			took := processorTime() - before
			if l.Peak > layouts.PlantedCapacity {
				lost++
			}
			if took > worst {
				worst, slowest = took, fmt.Sprintf("%s with seed %d", name, seed)
			}
			times = append(times, took)
		}
	}
	slices.Sort(times)
	n := len(times)
	row := func(what string, took, target time.Duration, note string) {
		e.add("tail: "+what, fmt.Sprintf("%.3f s%s", took.Seconds(), note), target.String(), took <= target)
	}
	row(fmt.Sprintf("half of %d runs", n), times[n/2], tailMedian, "")
	row("99 in 100", times[n*99/100], tailMost, "")
	row("the slowest", worst, tailWorst, ", "+slowest)
	e.add("tail: not fitted, where minimalloc's search is", fmt.Sprintf("%d in %s", lost, tailPatience), "0", lost == 0)
	return nil
}
