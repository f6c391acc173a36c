package ranks

import "slices"

// times are those of the first and the last row of a trace, in nanoseconds since 1970.
type times struct {
	start, end int64
	known      bool
}

// leastForMedian is how many ranks it takes to say which of them is odd.
const leastForMedian = 3

// others says of each of some traces whether it lies wholly before or behind the median beginning and end: the clock of its machine differs. Those of unknown
// times are none.
func others(all []times) []bool {
	var starts, ends []int64
	for _, t := range all {
		if t.known {
			starts, ends = append(starts, t.start), append(ends, t.end)
		}
	}
	differ := make([]bool, len(all))
	if len(starts) < leastForMedian {
		return differ
	}
	slices.Sort(starts)
	slices.Sort(ends)
	start, end := starts[len(starts)/2], ends[len(ends)/2]
	for i, t := range all {
		differ[i] = t.known && (t.end < start || t.start > end)
	}
	return differ
}

// clocks notes the ranks whose clocks differ, by what the files say of their times.
func (j *Job) clocks() {
	var all []times
	for _, m := range j.Members {
		all = append(all, m.times)
	}
	j.Clocks = nil
	for i, differs := range others(all) {
		if differs {
			j.Clocks = append(j.Clocks, j.Members[i].Rank)
		}
	}
}

// clocks marks the rows of ranks whose clocks differ, and returns these ranks.
func (t *Table) clocks() (ranks []int64) {
	var all []times
	for _, r := range t.Ranks {
		all = append(all, times{r.StartNS, r.EndNS, true})
	}
	for i, differs := range others(all) {
		r := t.Ranks[i]
		if r.Clock = differs; differs && !slices.Contains(ranks, r.Rank) {
			ranks = append(ranks, r.Rank)
		}
	}
	return ranks
}
