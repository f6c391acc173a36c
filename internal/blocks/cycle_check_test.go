package blocks

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// plainlyValid is Cycle.Check by its definition: each planned step lies in an arena of its stream, and no two overlap that are in use at once.
func plainlyValid(c *Cycle) bool {
	n := len(c.Steps)
	streams := map[int32]cuda.Stream{}
	for i, s := range c.Steps {
		if s.Arena == NoArena {
			continue
		}
		if s.Arena < 0 || int(s.Arena) >= len(c.Arenas) || s.Size <= 0 || s.Offset < 0 || s.Offset%512 != 0 ||
			roundUp(s.Offset+s.Size, 512) > c.Arenas[s.Arena] || s.Lasts < 1 || int(s.Lasts) > n {
			return false
		}
		if stream, ok := streams[s.Arena]; ok && stream != s.Stream {
			return false
		}
		streams[s.Arena] = s.Stream
		for k, o := range c.Steps {
			if inUse := (i-k+n)%n < int(o.Lasts); k == i || o.Arena != s.Arena || !inUse {
				continue
			}
			if s.Offset < roundUp(o.Offset+o.Size, 512) && o.Offset < roundUp(s.Offset+s.Size, 512) {
				return false
			}
		}
	}
	return n > 0
}

// TestCycleCheckAgainstDefinition checks random cycles of a few steps, of which about a third are valid.
func TestCycleCheckAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 43))
	valid := 0
	const tries = 20_000
	for range tries {
		c := &Cycle{Arenas: make([]int64, rng.IntN(3))}
		for i := range c.Arenas {
			c.Arenas[i] = 512 * rng.Int64N(9)
		}
		n := rng.IntN(6)
		for range n {
			s := Step{Size: 1 + 128*rng.Int64N(9), Arena: int32(rng.IntN(len(c.Arenas) + 1)), Offset: 512 * rng.Int64N(6), Lasts: int32(1 + rng.IntN(n))}
			if int(s.Arena) == len(c.Arenas) {
				s.Arena = NoArena
			}
			s.Stream = cuda.Stream(max(s.Arena, 0))
			c.Steps = append(c.Steps, s)
		}
		if n > 0 && rng.IntN(4) == 0 { // something is out of bounds, or nearly
			s := &c.Steps[rng.IntN(n)]
			switch rng.IntN(5) {
			case 0:
				s.Size = -512 + 512*rng.Int64N(2)
			case 1:
				s.Offset += -1024 + 256*rng.Int64N(9)
			case 2:
				s.Lasts = int32(rng.IntN(2) * (n + 1))
			case 3:
				s.Arena = int32(len(c.Arenas) - 2 + rng.IntN(3))
			case 4:
				s.Stream = cuda.Stream(rng.IntN(2))
			}
		}
		want := plainlyValid(c)
		if err := c.Check(); (err == nil) != want {
			t.Fatalf("%+v: error %v, but it is valid: %v", c, err, want)
		}
		if want {
			valid++
		}
	}
	if valid < tries/5 || valid > tries/2 {
		t.Errorf("%d of %d cycles are valid: the test is too easy", valid, tries)
	}
}

// TestCycleCheckLimits: sizes of up to MaxSize are valid, and empty arenas.
func TestCycleCheckLimits(t *testing.T) {
	for _, c := range []struct {
		arena, size int64
		valid       bool
	}{
		{MaxSize, MaxSize, true}, {MaxSize, MaxSize - 1, true}, {MaxSize + 512, MaxSize, false}, {MaxSize, MaxSize + 1, false}, {512, 512, true},
		{512, 513, false},
	} {
		t.Run(fmt.Sprint(c.arena, "/", c.size), func(t *testing.T) {
			cycle := &Cycle{Arenas: []int64{0, c.arena}, Steps: []Step{{Size: c.size, Arena: 1, Lasts: 1}}}
			if err := cycle.Check(); (err == nil) != c.valid {
				t.Errorf("error %v, but it is valid: %v", err, c.valid)
			}
		})
	}
}
