// Package iterations finds the iterations of a training job in what it asked of its allocator: the sizes and streams
// of its requests, in order. Times and stacks are not needed.
//
// Activations may change in size from iteration to iteration, but parameters do not, and so neither do gradients and
// what the optimizer needs. Short runs of requests that come once an iteration are then found by their regular
// distance: the distance that most such runs agree on is the length of an iteration, in requests. The first iteration
// may be longer, as it is there that the optimizer creates its state.
package iterations

import (
	"math"
	"slices"
)

// Span is the requests [Lo, Hi), counted from 0 in the order in which they were made.
type Span struct {
	Lo, Hi int
}

// Find returns the iterations, one after another without gaps, or nothing when the requests show no regular ones, as
// when text is generated. What comes before the first is the prologue, in which the model is built; what comes after
// the last is a rest too short for another. sizes are bytes as requested, live the bytes that live just before each
// request. The iterations begin where the least memory is in use, or, if live is nil, at some point that is the same in all
// of them. Of more than [MaxRequests] requests the first ones are looked at.
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

// MaxRequests is how many requests are looked at, the first ones: what Find holds in memory, and how long it takes, is bounded by it.
const MaxRequests = 1 << 22

// MaxInAll is how many requests are kept for it of all devices of a trace, by those who call Find for each of them.
const MaxInAll = 1 << 23

// leastRuns is how many runs must agree on the length of an iteration.
const leastRuns = 6

// anchor returns where the iterations begin. Each run that occurs as often as there are iterations marks them at some
// distance; taken is the one with a shift to where the least bytes live, or else the one that is the most even.
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

// maxAnchors bounds how many runs are tried as marks.
const maxAnchors = 200

// oneEach returns the runs that occur once in each iteration. Most do; a few that only the prologue or the end has once
// more are left out, and so are those that the first iterations lack, unless they are all there is.
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

// quietest returns the shift, of up to half a period, that brings all starts but the first, which may lie in the
// prologue, to where the least bytes live, summed over them. Of equal ones it takes the shortest.
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

// extend adds the iterations before the first start. A run that occurs there, and comes so many requests after the
// start in the iterations that are known, says where another would start; enough of them must agree.
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

// densest returns the first of the sorted numbers in the window of the given width that holds most, and how many it
// holds; of equal windows, the last.
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

// spans turns starts into iterations. The last ends where the requests do when that is about a period away, and is none
// when that is much less.
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
