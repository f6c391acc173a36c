package exact

import (
	"math/rand/v2"
	"testing"
)

// TestMemoryOfStates gives what a bucket knows after states were added to it: the one that took longest, and the latest one.
func TestMemoryOfStates(t *testing.T) {
	name := func(k uint64) state { return state{k << 32, k} } // all in one bucket
	type added struct {
		k              uint64
		capacity, cost int64
	}
	for what, test := range map[string]struct {
		added []added
		known map[uint64]int64 // the greatest capacity at which each of 1, 2 and 3 is known to fail; missing: none
	}{
		"nothing":                    {nil, nil},
		"one":                        {[]added{{1, 5, 9}}, map[uint64]int64{1: 5}},
		"two":                        {[]added{{1, 5, 9}, {2, 6, 4}}, map[uint64]int64{1: 5, 2: 6}},
		"two, the dearer last":       {[]added{{1, 5, 4}, {2, 6, 9}}, map[uint64]int64{1: 5, 2: 6}},
		"the dearest stays":          {[]added{{1, 5, 9}, {2, 6, 4}, {3, 7, 3}}, map[uint64]int64{1: 5, 3: 7}},
		"the dearest comes last":     {[]added{{1, 5, 9}, {2, 6, 4}, {3, 7, 10}}, map[uint64]int64{1: 5, 3: 7}},
		"one as dear comes last":     {[]added{{1, 5, 9}, {2, 6, 4}, {3, 7, 9}}, map[uint64]int64{1: 5, 3: 7}},
		"the dearest at another":     {[]added{{1, 5, 9}, {2, 6, 4}, {1, 8, 2}}, map[uint64]int64{1: 8, 2: 6}},
		"the dearest, now less dear": {[]added{{1, 5, 9}, {1, 8, 2}, {2, 6, 3}, {3, 7, 1}}, map[uint64]int64{2: 6, 3: 7}},
	} {
		var m memory
		for _, x := range test.added {
			m.add(name(x.k), x.capacity, x.cost)
		}
		for k := uint64(1); k <= 3; k++ {
			capacity, known := test.known[k]
			for c := range int64(12) {
				if got, want := m.has(name(k), c), known && c <= capacity; got != want {
					t.Errorf("%s: state %d at capacity %d: %v", what, k, c, got)
				}
			}
		}
	}
}

// TestMemoryGrows adds many states: the table has no fewer buckets than states up to a limit. When it grows it loses none that it has, but for one
// that the new state displaces.
func TestMemoryGrows(t *testing.T) {
	var m memory
	rng := rand.New(rand.NewPCG(1, 6))
	var names []state
	forgotten := func() (n int) {
		for k, known := range names {
			if !m.has(known, int64(k)) {
				n++
			}
			if m.has(known, int64(k)+1) {
				t.Fatalf("state %d is taken to fail at a greater capacity", k)
			}
		}
		return n
	}
	for n := range 2 * mostBuckets {
		name := state{rng.Uint64(), rng.Uint64()}
		grows := n == len(m.buckets) && n < mostBuckets
		before := 0
		if grows = grows && n <= 1<<12; grows {
			before = forgotten()
		}
		if n <= 1<<12 {
			names = append(names, name)
		}
		m.add(name, int64(n), 1)
		buckets := len(m.buckets)
		if buckets < leastBuckets || buckets > mostBuckets || n < mostBuckets && (buckets <= n || buckets > max(leastBuckets, 2*n)) {
			t.Fatalf("%d buckets for %d states", buckets, n+1)
		}
		if grows {
			// Few buckets have more than two states, as long as there are no more states than buckets.
			if after := forgotten(); after > before+1 || after > len(names)/6 {
				t.Fatalf("%d of %d states are forgotten, %d before", after, n+1, before)
			}
		}
	}
	if len(m.buckets) != mostBuckets {
		t.Errorf("%d buckets, expected %d", len(m.buckets), mostBuckets)
	}
}

// TestStopIsAsked counts the nodes between two calls of Stop. Each counts as its sections, and as at least a thousand.
func TestStopIsAsked(t *testing.T) {
	for sections, each := range map[int]int64{60: askEvery / leastSections, 2048: askEvery / 2048} {
		in := Instance{Sections: sections}
		for i := range int32(600) { // one on the other: each is a node
			in.Lo, in.Hi, in.Size = append(in.Lo, 0), append(in.Hi, int32(sections)), append(in.Size, 1+int64(i))
		}
		s := New(in)
		var asked []int64
		stop := func() bool {
			asked = append(asked, s.Nodes())
			return len(asked) == 2
		}
		rank := make([]int32, len(in.Lo))
		for i := range rank {
			rank[i] = int32(i)
		}
		if outcome := s.Try(Attempt{Capacity: 1 << 40, Rank: rank, Nodes: 1 << 30, Stop: stop}); outcome != Stopped || len(asked) != 2 {
			t.Fatalf("%v, asked after %v nodes", outcome, asked)
		}
		for i, nodes := range asked {
			if nodes != int64(i+1)*each {
				t.Errorf("%d sections: asked after %v nodes, expected each %d", sections, asked, each)
			}
		}
	}
}
