package policy

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// TestEvaluateWithin gives up no choice whose step is short enough.
func TestEvaluateWithin(t *testing.T) {
	gaveUp := 0
	for seed := range uint64(60) {
		g, l := randomProblem(seed, 40)
		if seed%2 == 0 {
			pace(g, rand.New(rand.NewPCG(seed, 1)))
		}
		c := newChooser(newProblem(g, l))
		for i := range c.prices {
			for _, how := range c.tastes(i) {
				o, err := c.attempt(how, fewBans)
				if err != nil {
					continue
				}
				for _, most := range []time.Duration{o.step, o.step - 1, o.step / 2} {
					again, err := c.evaluate(most)
					slow := errors.Is(err, errSlow)
					if slow && most >= o.step || !slow && (err != nil || again.result != o.result) {
						t.Fatalf("seed %d: a step of %v, of at most %v: %v, %v", seed, o.step, most, again.result, err)
					}
					if slow {
						gaveUp++
					}
				}
			}
		}
	}
	if gaveUp < 100 {
		t.Errorf("%d choices were given up", gaveUp)
	}
}
