package iterations

import (
	"cmp"
	"math/bits"
	"slices"
)

// run is a short sequence of requests that comes again and again at a regular distance.
type run struct {
	at     []int // where it begins, in requests
	period int   // the median distance, that from the first to the second left out
	same   int   // how many distances are the same as that
}

// lengths are those of the runs that are looked for, in requests. Longer ones are rarely repeated by chance or within
// an iteration; shorter ones survive between requests whose sizes change.
var lengths = [...]int{1, 2, 4, 8, 16}

const (
	granule    = 512 // bytes: requests that round up to the same multiple count as equal
	tolerance  = 50  // distances within a fiftieth count as equal
	leastCount = 32  // an iteration has at least so many requests
	blocks     = 16  // of equal length, to tell what occurs throughout
)

// symbols returns a number for each request that is equal for equal sizes and streams.
func symbols(sizes, streams []int64) []uint64 {
	out := make([]uint64, len(sizes))
	for i := range sizes {
		out[i] = hash(hash(uint64(sizes[i]+granule-1)/granule) + uint64(streams[i]))
	}
	return out
}

// hash is the finalizer of SplitMix64.
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// regularRuns returns the runs among all requests, and among those that are of a kind that occurs throughout: without
// the others, whose sizes change, longer runs remain.
func regularRuns(requests []uint64) []run {
	all := make([]int, len(requests))
	for i := range all {
		all[i] = i
	}
	var found []run
	for _, at := range [][]int{all, throughout(requests)} {
		for _, length := range lengths {
			found = appendRuns(found, requests, at, length)
		}
	}
	return found
}

// throughout returns the requests of the kinds that occur in most blocks.
func throughout(requests []uint64) []int {
	seen := map[uint64]uint16{} // a bit for each block
	for i, request := range requests {
		seen[request] |= 1 << (i * blocks / len(requests))
	}
	var kept []int
	for i, request := range requests {
		if bits.OnesCount16(seen[request]) > blocks/2 {
			kept = append(kept, i)
		}
	}
	return kept
}

// gram is one occurrence of a sequence of requests.
type gram struct {
	hash uint64
	at   int
}

// appendRuns adds the regular runs of one length among the requests listed in at.
func appendRuns(found []run, requests []uint64, at []int, length int) []run {
	if len(at) < length {
		return found
	}
	grams := make([]gram, len(at)-length+1)
	for i := range grams {
		h := uint64(0)
		for _, k := range at[i : i+length] {
			h = hash(h) + requests[k]
		}
		grams[i] = gram{h, at[i]}
	}
	slices.SortFunc(grams, func(a, b gram) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.at, b.at))
	})
	for begin := 0; begin < len(grams); {
		end := begin + 1
		for end < len(grams) && grams[end].hash == grams[begin].hash {
			end++
		}
		if r, ok := regular(grams[begin:end], len(requests)); ok {
			found = append(found, r)
		}
		begin = end
	}
	return found
}

// regular says whether the occurrences of one gram are spread evenly over the greater part of n requests: no distance
// is more than twice another, and of those after the first, which the first iteration may stretch, most are the same
// within the tolerance.
func regular(grams []gram, n int) (run, bool) {
	m := len(grams)
	if m < 2 || m > n/leastCount || 2*(grams[m-1].at-grams[0].at)*m < n*(m-1) {
		return run{}, false
	}
	distances := make([]int, m-1)
	for i := range distances {
		distances[i] = grams[i+1].at - grams[i].at
	}
	if least := slices.Min(distances); least < leastCount || slices.Max(distances) > 2*least {
		return run{}, false
	}
	later := distances[min(1, m-2):]
	slices.Sort(later)
	r := run{at: make([]int, m), period: later[len(later)/2]}
	for _, d := range later {
		if abs(d-r.period)*tolerance <= r.period {
			r.same++
		}
	}
	for i := range grams {
		r.at[i] = grams[i].at
	}
	return r, 10*r.same >= 7*len(later)
}

// spread returns the difference between the greatest and the least distance.
func (r run) spread() int {
	least, most := r.at[1]-r.at[0], r.at[1]-r.at[0]
	for i := 1; i < len(r.at); i++ {
		least, most = min(least, r.at[i]-r.at[i-1]), max(most, r.at[i]-r.at[i-1])
	}
	return most - least
}

// phase returns how many requests after the start of an iteration the run comes, in the median of the iterations that
// it occurs in.
func (r run) phase(starts []int) (phase int, ok bool) {
	var phases []int
	for _, at := range r.at {
		i, exact := slices.BinarySearch(starts, at)
		if !exact {
			i--
		}
		if i >= 0 {
			phases = append(phases, at-starts[i])
		}
	}
	if len(phases) == 0 {
		return 0, false
	}
	slices.Sort(phases)
	return phases[len(phases)/2], true
}

// agreed returns the period that most runs agree on, each counting for the distances that are the same, and the runs that do. There are
// none when those are less than a quarter.
func agreed(runs []run) (period int, in []run) {
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.period, b.period) })
	begin, weight, all, most := 0, 0, 0, 0
	for end, r := range runs {
		weight += r.same
		all += r.same
		for (r.period-runs[begin].period)*tolerance > runs[begin].period {
			weight -= runs[begin].same
			begin++
		}
		if weight > most {
			most, in = weight, runs[begin:end+1]
		}
	}
	if 4*most < all {
		return 0, nil
	}
	if len(in) > 0 {
		period = in[len(in)/2].period
	}
	return period, in
}
