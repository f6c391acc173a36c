package live

import (
	"math"
	"slices"
	"time"
)

// Latencies is the times that requests took, one by one.
type Latencies []time.Duration

// Summary is the quantiles of Latencies.
type Summary struct {
	P50, P99, P999, Max time.Duration
}

// Summary sorts l and returns its quantiles, each the time of an actual request. They are 0 if there was none.
func (l Latencies) Summary() Summary {
	if len(l) == 0 {
		return Summary{}
	}
	slices.Sort(l)
	at := func(share float64) time.Duration { return l[max(0, int(math.Ceil(share*float64(len(l))))-1)] }
	return Summary{P50: at(0.5), P99: at(0.99), P999: at(0.999), Max: l[len(l)-1]}
}

// Bucket is how many requests took at least From, and less than From of the next bucket.
type Bucket struct {
	From  time.Duration
	Count int64
}

// Histogram returns buckets that begin at 0 and at 1, 2 and 5 times each power of ten nanoseconds, from the first to the last that is not
// empty.
func (l Latencies) Histogram() []Bucket {
	buckets := []Bucket{{}}
	for unit := time.Nanosecond; unit <= 100*time.Second; unit *= 10 {
		buckets = append(buckets, Bucket{From: unit}, Bucket{From: 2 * unit}, Bucket{From: 5 * unit})
	}
	for _, took := range l {
		i, exact := slices.BinarySearchFunc(buckets, took, func(b Bucket, took time.Duration) int { return int(b.From - took) })
		if !exact {
			i--
		}
		buckets[max(i, 0)].Count++
	}
	filled := func(b Bucket) bool { return b.Count > 0 }
	first := slices.IndexFunc(buckets, filled)
	if first < 0 {
		return nil
	}
	last := len(buckets) - 1
	for !filled(buckets[last]) {
		last--
	}
	return buckets[first : last+1]
}
