package blocks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/cuda"
)

// plainRequest is a request with the number of the one before which it was freed, 0 if it is in use.
type plainRequest struct {
	size   int64
	stream cuda.Stream
	freed  int
}

// plainRepetition is history.repetition by its definition: the shortest iteration, of 16 requests or more, that the last requests are three
// times, with the same bytes in use at the end of each. It begins where the fewest bytes are in use. A request lasts as long as the longer
// one of its last two, if the last one was freed, and within an iteration.
func plainRepetition(all []plainRequest) []Request {
	n := len(all)
	live := make([]int64, n) // before each request
	for i := range all {
		for _, r := range all[:i] {
			if r.freed == 0 || r.freed > i {
				live[i] += r.size
			}
		}
	}
	repeats := func(period int) bool {
		for i := n - 2*period; i < n; i++ {
			if a, b := all[i], all[i-period]; a.size != b.size || a.stream != b.stream {
				return false
			}
		}
		return live[n-1] == live[n-1-period] && live[n-1] == live[n-1-2*period]
	}
	for period := 16; 3*period <= n; period++ {
		if !repeats(period) {
			continue
		}
		iteration := make([]Request, period)
		window := live[n-2*period : n-period]
		begin := n - 2*period + slices.Index(window, slices.Min(window))
		for i := range iteration {
			k := begin + i
			lasts := max(all[k].freed-k, all[k-period].freed-(k-period), 0)
			if all[k].freed == 0 || lasts > period {
				lasts = 0
			}
			iteration[i] = Request{Size: all[k].size, Stream: all[k].stream, Lasts: int32(lasts)}
		}
		return iteration
	}
	return nil
}

// TestHistoryAgainstDefinition looks for iterations in requests that repeat themselves most of the time, with inner loops, with memory that
// grows, that is freed late or never.
func TestHistoryAgainstDefinition(t *testing.T) {
	found := map[int]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 47))
		h := &history{open: newIndex(), next: 1 << 30, limit: 1 << 30}
		var all []plainRequest
		var due [][]int // by request, those that are freed before it
		inner := make([]int64, 2+rng.IntN(17))
		for i := range inner {
			inner[i] = 1 + rng.Int64N(2)
		}
		turns := 1 + rng.IntN(3)
		leaks := rng.IntN(5) == 0
		for range 6 * turns * len(inner) {
			i := len(all)
			for len(due) <= i+100 {
				due = append(due, nil)
			}
			for _, k := range due[i] {
				h.free(cuda.Ptr(1 + k))
				all[k].freed = i
			}
			r := plainRequest{size: inner[i%len(inner)], stream: cuda.Stream(i % len(inner) % 2)}
			switch rng.IntN(300) {
			case 0:
				r.size++
			case 1:
				r.stream++
			}
			all = append(all, r)
			h.malloc(cuda.Ptr(1+i), r.size, r.stream)
			if lasts := 1 + i%(turns*len(inner))*7%60; !leaks || i%37 > 0 {
				if rng.IntN(100) == 0 {
					lasts = 1 + rng.IntN(80)
				}
				due[i+lasts] = append(due[i+lasts], i)
			}
			got, want := h.repetition(), plainRepetition(all)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: after %d requests\n%v, want\n%v", seed, i+1, got, want)
			}
			found[len(got)]++
		}
	}
	if len(found) < 10 || found[0] < 100 || found[leastIteration] < 10 {
		t.Errorf("iterations by length %v: the test is too easy", found)
	}
}

// TestHistoryEnds: an iteration of the least length is found when it has come three times, and without one the requests are kept up to the
// limit.
func TestHistoryEnds(t *testing.T) {
	for _, c := range []struct {
		about        string
		kinds, limit int64
		over, found  int
	}{
		{"an iteration", leastIteration, 1000, 3 * leastIteration, leastIteration},
		{"an iteration at the limit", leastIteration, 3 * leastIteration, 3 * leastIteration, leastIteration},
		{"none before the limit", leastIteration, 3*leastIteration - 1, 3*leastIteration - 1, 0},
		{"none", 1 << 40, 1000, 1000, 0},
	} {
		found, over := 0, 0
		h := &history{open: newIndex(), next: 3 * leastIteration, limit: int(c.limit), found: func(it []Request) { found = len(it) }}
		for i := int64(0); over == 0; i++ {
			if h.malloc(1, 1+i%c.kinds, 0) {
				over = int(i) + 1
			}
			h.free(1)
		}
		if found != c.found || over != c.over {
			t.Errorf("%s: over after %d requests with an iteration of %d, want %d and %d", c.about, over, found, c.over, c.found)
		}
	}
}
