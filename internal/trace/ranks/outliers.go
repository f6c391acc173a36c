package ranks

import (
	"fmt"
	"math"
	"time"

	"gm/internal/units"
)

// A value is an outlier if it is this far from the median, as a part of the median and in multiples of the median distance from it.
const (
	leastPart  = 0.05
	leastTimes = 5
)

// outliers names the ranks that are far from the median, and those that failed.
func (t *Table) outliers() {
	size := func(v float64) string { return units.Bytes(int64(v)).String() }
	span := func(v float64) string { return time.Duration(v).Round(time.Millisecond).String() }
	t.outliersOf("peak", size, func(r *Rank) int64 { return r.Peak })
	t.outliersOf("reserved", size, func(r *Rank) int64 { return r.Reserved })
	t.outliersOf("NCCL", size, func(r *Rank) int64 { return r.NCCL })
	t.outliersOf("iteration", span, func(r *Rank) int64 { return r.IterationNS })
	var failed []int64
	for _, r := range t.Ranks {
		if r.OOMs > 0 {
			failed = append(failed, r.Rank)
		}
	}
	if len(failed) > 0 {
		t.Outliers = append(t.Outliers, Names(failed)+": requests failed for want of memory")
	}
}

// outliersOf names the ranks of which a value is far from the median; ranks on the same side are named together.
func (t *Table) outliersOf(what string, text func(float64) string, of func(*Rank) int64) {
	if len(t.Ranks) < leastForMedian {
		return
	}
	var values []float64
	for _, r := range t.Ranks {
		values = append(values, float64(of(r)))
	}
	median, spread := medians(values)
	for _, side := range []float64{1, -1} {
		var ranks []int64
		far := 0.0
		for i, r := range t.Ranks {
			if by := side * (values[i] - median); by > leastPart*median && by > leastTimes*spread && by > 0 {
				ranks = append(ranks, r.Rank)
				if math.Abs(values[i]-median) > math.Abs(far-median) || len(ranks) == 1 {
					far = values[i]
				}
			}
		}
		if len(ranks) == 0 {
			continue
		}
		word := map[float64]string{1: "up to", -1: "down to"}[side]
		if len(ranks) == 1 {
			word = "of"
		}
		t.Outliers = append(t.Outliers, fmt.Sprintf("%s: %s %s %s, the median is %s", Names(ranks), what, word, text(far), text(median)))
	}
}
