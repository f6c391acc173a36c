package tuning

import (
	"math/bits"
	"slices"
)

// knob sets one thing to each of its values in turn.
type knob func(s Setting) []Setting

// The values that are tried, sizes in MiB. Other values of roundup_power2_divisions lie between these, or round by next to nothing.
var (
	splitSizes     = []int64{0, 32, 64, 128, 256, 512, 1024, 2048}
	splitRoundings = []int64{20, 64, 256, 1024}
	largeSegments  = []int64{10, 14, 20, 32, 64, 128, 256, 512}
	divisionSteps  = []int64{0, 2, 4, 8, 16}
	thresholds     = []float64{0, 0.5, 0.6, 0.7, 0.8, 0.9}
)

// intervals are the groups of size classes that are rounded alike, by their first class. A class is a power of two of MiB. The first class
// also holds all smaller sizes.
var intervals = [...]int{0, 1, 4, 7, 10}

// knobs returns what can be changed for these jobs. Settings that are a share of the memory are left alone if there is a job without a limit.
func knobs(jobs []Job) []knob {
	all := []knob{
		func(s Setting) []Setting { s.Expandable = !s.Expandable; return []Setting{s} },
		func(s Setting) []Setting {
			return each(splitSizes, func(mib int64) Setting {
				c := s
				if c.MaxSplitSize = mib << 20; mib == 0 {
					c.MaxNonSplitRounding = Default().MaxNonSplitRounding
				}
				return c
			})
		},
		func(s Setting) []Setting {
			if s.MaxSplitSize == 0 {
				return nil
			}
			return each(splitRoundings, func(mib int64) Setting { c := s; c.MaxNonSplitRounding = mib << 20; return c })
		},
		func(s Setting) []Setting {
			return each(largeSegments, func(mib int64) Setting { c := s; c.LargeSegment = mib << 20; return c })
		},
		func(s Setting) []Setting {
			return each(divisionSteps, func(n int64) Setting { return s.divide(0, len(s.Divisions), n) })
		},
	}
	used := usedIntervals(jobs)
	for i, from := range intervals {
		to := len(Setting{}.Divisions)
		if i+1 < len(intervals) {
			to = intervals[i+1]
		}
		if used[i] {
			all = append(all, func(s Setting) []Setting {
				return each(divisionSteps, func(n int64) Setting { return s.divide(from, to, n) })
			})
		}
	}
	if !slices.ContainsFunc(jobs, func(j Job) bool { return j.Room.Bytes == 0 }) {
		all = append(all, func(s Setting) []Setting {
			return each(thresholds, func(x float64) Setting { c := s; c.GCThreshold = x; return c })
		})
	}
	return all
}

// divide rounds the classes from..to-1 to n steps between two powers of two.
func (s Setting) divide(from, to int, n int64) Setting {
	for class := from; class < to; class++ {
		s.Divisions[class] = n
	}
	return s
}

func each[T any](values []T, set func(T) Setting) []Setting {
	all := make([]Setting, len(values))
	for i, v := range values {
		all[i] = set(v)
	}
	return all
}

// usedIntervals reports which intervals have requests.
func usedIntervals(jobs []Job) [len(intervals)]bool {
	var used [len(intervals)]bool
	for _, j := range jobs {
		for _, size := range j.Sizes {
			class := max(bits.Len64(uint64(size))-21, 0)
			for i := len(intervals) - 1; i >= 0; i-- {
				if class >= intervals[i] {
					used[i] = true
					break
				}
			}
		}
	}
	return used
}
