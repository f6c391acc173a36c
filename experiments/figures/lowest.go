package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"gm/internal/dsa"
)

// How long each of minimalloc's instances is searched for lower layouts, and by how many workers. The environment variable
// GM_SECONDS changes the time.
const (
	lowestTime    = 60 * time.Second
	lowestWorkers = 2
)

// knownHeight returns the lowest height, in bytes, that was known for an instance of google/minimalloc: found by depth-first search
// in hundreds of orders, at lower and lower capacities. Where it is the load, as in all but D and J, it is the least there is.
func knownHeight(name string) int64 {
	switch name {
	case minimallocPrefix + "C":
		return 1_039_360
	case minimallocPrefix + "D":
		return 1_018_880
	case minimallocPrefix + "J":
		return 1_029_120
	}
	return 1_048_576
}

// measureLowest looks for the lowest layouts of minimalloc's instances.
func measureLowest(e *experiment) error {
	limit, err := patience(lowestTime)
	if err != nil {
		return err
	}
	instances, err := e.sharedInstances("lowest", true)
	if err != nil {
		return err
	}
	for _, in := range instances {
		l, took, err := solveFor(limit, "auto", in.problem, dsa.Options{Workers: lowestWorkers})
		if err != nil {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		verdict := "optimal"
		if !l.Optimal() {
			verdict = fmt.Sprintf("gap %.2f %%", 100*(float64(l.Peak)/float64(l.Bound)-1))
		}
		known := knownHeight(in.name)
		e.add("lowest "+in.name, fmt.Sprintf("peak %d, bound %d, %s, %.1f s", l.Peak, l.Bound, verdict, took.Seconds()),
			fmt.Sprintf("%d, %s", known, limit), l.Peak <= known)
	}
	return nil
}

// patience returns the time that GM_SECONDS says, or the given one.
func patience(otherwise time.Duration) (time.Duration, error) {
	text := os.Getenv("GM_SECONDS")
	if text == "" {
		return otherwise, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds < 1e6) {
		return 0, fmt.Errorf("GM_SECONDS=%q, expected a number of seconds", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
