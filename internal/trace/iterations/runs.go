package iterations

import (
	"cmp"
	"math/bits"
	"slices"
)

// run is a short sequence of requests that recurs at a regular distance.
type run struct {
	at     []int // the requests at which it begins
	period int   // the median distance, without that from the first to the second
	same   int   // how many distances are equal to it
}

// lengths are the lengths of the runs to search for, in requests. Longer runs rarely recur by chance or within an
// iteration; shorter ones fit between requests whose sizes change.
var lengths = [...]int{1, 2, 4, 8, 16}

const (
	granule    = 512 // bytes: requests that round up to the same multiple count as equal
	tolerance  = 50  // distances within a fiftieth count as equal
	leastCount = 32  // the fewest requests of an iteration
	blocks     = 16  // number of blocks of equal length, to find what occurs throughout
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

// regularRuns returns the runs among all requests, and those among the requests of kinds that occur throughout. The
// latter are longer, since requests whose sizes change are left out.
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
	sortByHash(grams)
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

// sortByHash sorts by hash, byte by byte from the lowest. Equal hashes keep their order.
func sortByHash(grams []gram) {
	from, to := grams, make([]gram, len(grams))
	for shift := 0; shift < 64; shift += 8 {
		var starts [257]int
		for i := range from {
			starts[from[i].hash>>shift&0xff+1]++
		}
		for digit := 1; digit < len(starts); digit++ {
			starts[digit] += starts[digit-1]
		}
		for _, g := range from {
			digit := g.hash >> shift & 0xff
			to[starts[digit]] = g
			starts[digit]++
		}
		from, to = to, from
	}
}

// regular reports whether the occurrences of one gram are spread evenly over most of n requests: no distance is more
// than twice another, and most are equal within the tolerance. The first distance, which the first iteration may
// stretch, does not count for the latter.
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

// phase returns the median distance of the run from the start of the iteration, in requests, over the iterations in
// which it occurs.
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

// agreed returns the period that most runs agree on, each weighted by its number of equal distances, and the runs that agree. It
// returns no runs if they are less than a quarter.
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
