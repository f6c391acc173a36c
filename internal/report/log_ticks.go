package report

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// logTicks marks a logarithmic axis at the multiples of powers of ten. So many of them have labels that there are some on any axis.
type logTicks struct{}

// leastLabels is how many labels an axis has at least.
const leastLabels = 3

// Ticks implements plot.Ticker.
func (logTicks) Ticks(least, most float64) []plot.Tick {
	all := multiples(least, most)
	for _, labelled := range [][]int{{1}, {1, 2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		labels := 0
		ticks := make([]plot.Tick, len(all))
		for i, m := range all {
			ticks[i].Value = m.value()
			if slices.Contains(labelled, m.times) {
				ticks[i].Label = strconv.FormatFloat(m.value(), 'g', -1, 64)
				labels++
			}
		}
		if labels >= leastLabels {
			return ticks
		}
	}
	return plot.DefaultTicks{}.Ticks(least, most) // on an axis so short there are others between them
}

// multiple is a power of ten, some times.
type multiple struct {
	times, power int
}

func (m multiple) value() float64 {
	if m.power < 0 {
		return float64(m.times) / math.Pow10(-m.power) // as written: 3/10 is 0.3, 3*0.1 is not
	}
	return float64(m.times) * math.Pow10(m.power)
}

// multiples returns those within a range above 0.
func multiples(least, most float64) []multiple {
	var all []multiple
	for power := int(math.Floor(math.Log10(least))); math.Pow10(power) <= most; power++ {
		for times := 1; times < 10; times++ {
			if m := (multiple{times, power}); m.value() >= least && m.value() <= most {
				all = append(all, m)
			}
		}
	}
	return all
}
