package main

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"gm/internal/dsa"
)

// An instance of google/minimalloc must be fitted in so many bytes, the capacity that they are for, in so much time on one core, which is to be
// less than minimalloc takes by such factors.
const (
	fitCapacity   = 1 << 20
	fitTime       = 500 * time.Millisecond
	fitFactor     = 4.0
	fitMeanFactor = 12.0
	fitPatience   = 20 * time.Second
)

// minimallocTimes returns the seconds that google/minimalloc (commit 9f5cf81, g++ 12 -O3) takes for each of its instances at
// that capacity, the median of three runs on a virtual machine like that of docs/figures.md.
func minimallocTimes() map[string]float64 {
	return map[string]float64{
		"A": 5.76, "B": 4.50, "C": 0.92, "D": 4.15, "E": 4.36, "F": 5.88, "G": 1.24, "H": 1.72, "I": 3.78, "J": 1.56, "K": 0.67,
	}
}

// measureFit fits minimalloc's instances in their capacity, on one core.
func measureFit(e *experiment) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	instances, err := e.sharedInstances("fit", true)
	if err != nil || len(instances) == 0 {
		return err
	}
	logs, compared := 0.0, 0
	for _, in := range instances {
		l, took, err := fastestFor(fitPatience, "auto", in.problem, dsa.Options{Capacity: fitCapacity, Workers: 1})
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		measured := fmt.Sprintf("%.4f s", took.Seconds())
		met := took <= fitTime
		if theirs := minimallocTimes()[in.name[len(minimallocPrefix):]]; theirs > 0 {
			factor := theirs / took.Seconds()
			measured += fmt.Sprintf(", minimalloc %.2f s: %.1f times", theirs, factor)
			met = met && factor >= fitFactor
			logs += math.Log(factor)
			compared++
		}
		if l.Peak > fitCapacity {
			measured, met = fmt.Sprintf("peak %d after %.1f s", l.Peak, took.Seconds()), false
		}
		e.add("fit "+in.name, measured, fmt.Sprintf("%.1f s, %.0f times", fitTime.Seconds(), fitFactor), met)
	}
	if compared > 0 {
		mean := math.Exp(logs / float64(compared))
		e.add(fmt.Sprintf("fit: geometric mean of %d", compared), fmt.Sprintf("%.1f times", mean), fmt.Sprintf("%.0f times", fitMeanFactor), mean >= fitMeanFactor)
	}
	return nil
}
