package residue

import (
	"math/rand/v2"
	"testing"
)

func TestCongruence(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 2000 {
		c := Class{Step: 1 + rng.Int64N(30)}
		d := Class{Step: 1 + rng.Int64N(30)}
		c.Remainder, d.Remainder = rng.Int64N(c.Step), rng.Int64N(d.Step)
		first := int64(-1)
		for x := range c.Step * d.Step {
			if x%c.Step == c.Remainder && x%d.Step == d.Remainder {
				first = x
				break
			}
		}
		both, ok := c.And(d)
		if ok != (first >= 0) || ok && (both.Remainder != first || both.Step != c.Step/Gcd(c.Step, d.Step)*d.Step) {
			t.Fatalf("%+v and %+v: %+v, %t, expected a rest of %d", c, d, both, ok, first)
		}
		x := rng.Int64N(200) - 100
		up, down := c.AtLeast(x), c.AtMost(x)
		if up < x || up >= x+c.Step || down > x || down <= x-c.Step || Mod(up, c.Step) != c.Remainder || Mod(down, c.Step) != c.Remainder {
			t.Fatalf("%+v around %d: %d and %d", c, x, down, up)
		}
	}
	if _, ok := (Class{Step: 1<<62 + 1}).And(Class{Step: 1 << 62}); ok {
		t.Error("a step beyond an int64")
	}
}
