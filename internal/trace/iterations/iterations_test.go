package iterations

import (
	"math/rand/v2"
	"testing"
)

// job makes the requests of a training job.
type job struct {
	rng    *rand.Rand
	sizes  []int64
	stream []int64
	live   []int64
	now    int64 // live bytes
	starts []int
}

// ask records a request; keep of its bytes stay live.
func (j *job) ask(size, keep int64) {
	j.sizes, j.stream, j.live = append(j.sizes, size), append(j.stream, 0), append(j.live, j.now)
	j.now += keep
}

// train makes a job of layers of two parameters; each iteration has activations whose size is scaled by vary, or is
// always the same for 0.
func train(seed uint64, iterations, layers int, vary int64) *job {
	j := &job{rng: rand.New(rand.NewPCG(seed, 0))}
	parameter := func(i int) int64 { return 1 << 20 * int64(1+i%2*3+i/(layers*2-1)) }
	for i := range 2 * layers {
		j.ask(parameter(i), parameter(i))
	}
	base := j.now
	for n := range iterations {
		j.now = base
		j.starts = append(j.starts, len(j.sizes))
		scale := int64(1000)
		if vary > 0 {
			scale += j.rng.Int64N(vary)
		}
		j.ask(scale*8, scale*8)
		for range layers {
			for k := range int64(6) {
				j.ask(scale*(k+2)*700, scale*700)
			}
		}
		for i := range 2 * layers {
			j.ask(scale*1400, 0)
			j.ask(parameter(2*layers-1-i), parameter(i))
		}
		for i := range 2 * layers {
			if n == 0 {
				j.ask(2*parameter(i), 0) // the optimizer's state
				base += 2 * parameter(i)
			}
			j.ask(parameter(i), 0)
		}
	}
	return j
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name               string
		iterations, layers int
		vary               int64
	}{
		{"three of fixed sizes", 3, 10, 0},
		{"twenty of fixed sizes", 20, 24, 0},
		{"five of sizes that vary", 5, 24, 400},
		{"forty of sizes that vary", 40, 12, 900},
	} {
		for seed := range uint64(5) {
			j := train(seed, c.iterations, c.layers, c.vary)
			found := Find(j.sizes, j.stream, j.live)
			if len(found) != c.iterations {
				t.Errorf("%s: found %v, expected %v", c.name, found, j.starts)
				continue
			}
			for i, span := range found {
				end := len(j.sizes)
				if i+1 < len(found) {
					end = j.starts[i+1]
				}
				if abs(span.Lo-j.starts[i]) > 4 || abs(span.Hi-end) > 4 {
					t.Errorf("%s: iteration %d is %v, expected [%d, %d)", c.name, i, span, j.starts[i], end)
				}
			}
		}
	}
}

func TestFindWithoutLiveBytes(t *testing.T) {
	j := train(1, 10, 24, 0)
	found := Find(j.sizes, j.stream, nil)
	if len(found) < 9 || len(found) > 10 {
		t.Fatalf("found %v, expected starts near %v", found, j.starts)
	}
	for i := 1; i < len(found); i++ {
		if found[i].Lo != found[i-1].Hi {
			t.Errorf("a gap between %v and %v", found[i-1], found[i])
		}
	}
}

func TestFindNone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	random, growing, equal := make([]int64, 5000), make([]int64, 5000), make([]int64, 5000)
	for i := range random {
		random[i], growing[i], equal[i] = 512*rng.Int64N(800), int64(i*512), 4096
	}
	for _, sizes := range [][]int64{nil, {1}, {1, 1}, random, growing, equal, {1 << 62, 1 << 62, -1}} {
		if found := Find(sizes, make([]int64, len(sizes)), make([]int64, len(sizes))); found != nil {
			t.Errorf("found %v among %d requests", found, len(sizes))
		}
	}
}

func BenchmarkFind(b *testing.B) {
	j := train(1, 100, 100, 900)
	for b.Loop() {
		Find(j.sizes, j.stream, j.live)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(j.sizes)), "ns/request")
}
