// Package iterations finds the iterations of a training job in its requests to the allocator. It uses their sizes and
// streams, in order, but neither times nor stacks.
//
// Activations may change in size from iteration to iteration. Parameters do not, and so neither do gradients and the
// optimizer's memory. Short runs of requests that occur once per iteration are therefore found by their regular
// distance. The distance that most such runs agree on is the length of an iteration, in requests. The first iteration
// may be longer, since the optimizer creates its state there.
package iterations

import (
	"math"
	"slices"
)

// Span is the requests [Lo, Hi), counted from 0 in order.
type Span struct {
	Lo, Hi int
}

// Find returns the iterations, one after another without gaps. It returns none if the requests show no regular
// iterations, as in text generation. Requests before the first iteration are the prologue, in which the model is built;
// those after the last are too few for another. sizes are bytes as requested, live the live bytes just before each
// request. Iterations begin where the least memory is in use or, if live is nil, at some point that is the same in all
// of them. Only the first [MaxRequests] requests are examined.
func Find(sizes, streams, live []int64) []Span {
	if len(sizes) > MaxRequests {
		sizes, streams, live = sizes[:MaxRequests], streams[:MaxRequests], live[:min(len(live), MaxRequests)]
	}
	period, runs := agreed(regularRuns(symbols(sizes, streams)))
	if len(runs) < leastRuns {
		return nil
	}
	starts := anchor(runs, live, period)
	starts = extend(starts, runs, period)
	return spans(starts, len(sizes), period)
}

// MaxRequests is how many requests Find examines, from the first. It bounds the memory and the time of Find.
const MaxRequests = 1 << 22

// MaxInAll is how many requests the callers of Find keep for all devices of a trace together.
const MaxInAll = 1 << 23

// leastRuns is the least number of runs that must agree on the length of an iteration.
const leastRuns = 6

// anchor returns where the iterations begin. Each run that occurs once per iteration marks them, at some distance.
// anchor takes the run that can be shifted to where the fewest bytes are live or, without live bytes, the most regular one.
func anchor(runs []run, live []int64, period int) []int {
	runs = oneEach(runs)
	best, bestLive := runs[0], int64(math.MaxInt64)
	bestShift := 0
	for i, r := range runs {
		if live == nil {
			if r.spread() < best.spread() {
				best = r
			}
			continue
		}
		if i%(1+len(runs)/maxAnchors) != 0 {
			continue
		}
		if shift, sum := quietest(r.at, live, period); sum < bestLive || sum == bestLive && abs(shift) < abs(bestShift) {
			best, bestLive, bestShift = r, sum, shift
		}
	}
	starts := slices.Clone(best.at)
	for i := range starts {
		starts[i] = max(starts[i]+bestShift, 0)
	}
	return starts
}

// maxAnchors is about how many runs are tried as marks.
const maxAnchors = 200

// oneEach returns the runs that occur once in each iteration, as most do. Runs that occur once more, in the prologue or
// at the end, are omitted, and so are those that are missing in the first iterations, unless there are no others.
func oneEach(runs []run) []run {
	votes := map[int]int{}
	most := 0
	for _, r := range runs {
		votes[len(r.at)]++
		most = max(most, votes[len(r.at)])
	}
	count := 0
	for n, v := range votes {
		if 4*v >= most {
			count = max(count, n)
		}
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return len(r.at) != count })
}

// quietest returns the shift, by up to half a period, that minimizes the sum of the live bytes at all starts but the
// first, which may lie in the prologue. Among equal shifts it takes the shortest.
func quietest(starts []int, live []int64, period int) (shift int, sum int64) {
	sum = math.MaxInt64
	for distance := range period/2 + 1 {
		for _, s := range [2]int{distance, -distance} {
			total := int64(0)
			for _, start := range starts[1:] {
				total += live[min(max(start+s, 0), len(live)-1)]
			}
			if total < sum {
				shift, sum = s, total
			}
		}
	}
	return shift, sum
}

func abs(x int) int { return max(x, -x) }

// extend adds iterations before the first start. A run that occurs there indicates where an iteration starts, by its
// distance from the start in the known iterations. Enough runs must agree.
func extend(starts []int, runs []run, period int) []int {
	for {
		var claims []int
		for _, r := range runs {
			phase, ok := r.phase(starts)
			if !ok {
				continue
			}
			for _, at := range r.at {
				if claim := at - phase; claim >= 0 && claim <= starts[0]-period/2 {
					claims = append(claims, claim)
				}
			}
		}
		slices.Sort(claims)
		first, count := densest(claims, period/tolerance)
		if count < max(3, len(runs)/10) {
			return starts
		}
		starts = slices.Insert(starts, 0, first)
	}
}

// densest finds the window of the given width that contains the most of the sorted numbers, the last among equals. It
// returns the first number in it and how many it contains.
func densest(numbers []int, width int) (first, count int) {
	begin := 0
	for i, number := range numbers {
		for number-numbers[begin] > width {
			begin++
		}
		if i-begin+1 >= count {
			first, count = numbers[begin], i-begin+1
		}
	}
	return first, count
}

// spans turns starts into iterations. The last one ends with the requests if that is about a period after its start. If
// it is much less, the last start begins no iteration.
func spans(starts []int, requests, period int) []Span {
	var found []Span
	for i, lo := range starts {
		hi := requests
		if i+1 < len(starts) {
			hi = min(starts[i+1], requests)
		} else if requests-lo > period+period/2 {
			hi = lo + period
		}
		if hi-lo >= period*3/4 {
			found = append(found, Span{lo, hi})
		}
	}
	return found
}
