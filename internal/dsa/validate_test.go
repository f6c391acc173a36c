package dsa

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *Problem)
		says   string // "" when it is valid
	}{
		{"plain", func(p *Problem) {}, ""},
		{"all there is", func(p *Problem) {
			p.Aligns, p.Fixed, p.Ties, p.Period = []int64{0, 1, 512}, []int64{Free, 0, Free}, []Tie{{0, 2, 256}}, 10
		}, ""},
		{"short alignments", func(p *Problem) { p.Aligns = []int64{1} }, "alignments"},
		{"negative alignment", func(p *Problem) { p.Aligns = []int64{0, -1, 0} }, "buffer 1 has alignment"},
		{"short fixed", func(p *Problem) { p.Fixed = []int64{1} }, "fixed offsets"},
		{"fixed below 0", func(p *Problem) { p.Fixed = []int64{Free, Free, -2} }, "buffer 2 is fixed at -2"},
		{"fixed and not aligned", func(p *Problem) { p.Fixed = []int64{Free, Free, 100} }, "buffer 2 is fixed at 100"},
		{"fixed and not aligned as it wants", func(p *Problem) {
			p.Aligns, p.Fixed = []int64{0, 0, 1024}, []int64{Free, Free, 256}
		}, "buffer 2 is fixed at 256"},
		{"fixed and overlap", func(p *Problem) { p.Fixed = []int64{512, Free, 256} }, "buffers 0 and 2"},
		{"fixed and apart", func(p *Problem) { p.Fixed = []int64{1024, Free, 256} }, ""},
		{"fixed too far up", func(p *Problem) { p.Fixed = []int64{math.MaxInt64 &^ 255, Free, Free} }, "too far up"},
		{"overlap through a tie", func(p *Problem) {
			p.Fixed, p.Ties = []int64{0, Free, 512}, []Tie{{0, 1, 512}}
		}, "buffers"},
		{"tie of nothing", func(p *Problem) { p.Ties = []Tie{{0, 3, 0}} }, "buffers 0 and 3"},
		{"tie at odds with the alignment", func(p *Problem) { p.Ties = []Tie{{0, 1, 3}} }, "multiple of 256"},
		{"tie too far", func(p *Problem) { p.Ties = []Tie{{0, 1, math.MinInt64}} }, "distance"},
		{"ties too far in all", func(p *Problem) { p.Ties = []Tie{{0, 1, 1 << 61}, {1, 2, 1 << 61}} }, ""},
		{"ties beyond an int64", func(p *Problem) {
			p.Align = 1
			p.Ties = []Tie{{0, 1, math.MaxInt64 / 2}, {1, 2, math.MaxInt64 / 2}}
		}, "reach too far"},
		{"ties in agreement", func(p *Problem) { p.Ties = []Tie{{0, 1, 256}, {1, 2, 256}, {2, 0, -512}} }, ""},
		{"ties in contradiction", func(p *Problem) { p.Ties = []Tie{{0, 1, 256}, {1, 2, 256}, {2, 0, -256}} }, "contradict"},
		{"a tie to itself", func(p *Problem) { p.Ties = []Tie{{1, 1, 256}} }, "contradict"},
		{"ties at odds with alignments", func(p *Problem) {
			p.Aligns, p.Ties = []int64{1024, 1024, 0}, []Tie{{0, 1, 256}}
		}, "no offset suits"},
		{"ties that alignments allow", func(p *Problem) {
			p.Aligns, p.Ties = []int64{1024, 768, 0}, []Tie{{0, 1, 256}}
		}, ""},
		{"fixed at odds with a tie", func(p *Problem) {
			p.Fixed, p.Ties = []int64{0, 1024, Free}, []Tie{{0, 1, 256}}
		}, "ties do not allow"},
		{"fixed with a tie below 0", func(p *Problem) {
			p.Fixed, p.Ties = []int64{0, Free, Free}, []Tie{{0, 1, -256}}
		}, "ties do not allow"},
		{"fixed with a tie that is not aligned", func(p *Problem) {
			p.Aligns, p.Fixed, p.Ties = []int64{0, 512, 0}, []int64{0, Free, Free}, []Tie{{0, 1, 256}}
		}, "not aligned where it is fixed"},
		{"negative period", func(p *Problem) { p.Period = -1 }, "period -1"},
		{"period too long", func(p *Problem) { p.Period = math.MaxInt64 }, "period"},
		{"longer than the period", func(p *Problem) { p.Period = 3 }, "buffer 0 lives for 4"},
		{"alignments too great", func(p *Problem) { p.Aligns = []int64{1 << 62, 1 << 62, 1 << 62} }, "alignments add up"},
	} {
		p := &Problem{Align: 256}
		p.add(0, 4, 1000)
		p.add(4, 6, 100)
		p.add(1, 5, 700)
		c.change(p)
		err := p.Validate()
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

func TestCongruence(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 2000 {
		c := congruence{step: 1 + rng.Int64N(30)}
		d := congruence{step: 1 + rng.Int64N(30)}
		c.rest, d.rest = rng.Int64N(c.step), rng.Int64N(d.step)
		first := int64(-1)
		for x := range c.step * d.step {
			if x%c.step == c.rest && x%d.step == d.rest {
				first = x
				break
			}
		}
		both, ok := c.and(d)
		if ok != (first >= 0) || ok && (both.rest != first || both.step != c.step/gcd(c.step, d.step)*d.step) {
			t.Fatalf("%+v and %+v: %+v, %t, expected a rest of %d", c, d, both, ok, first)
		}
		x := rng.Int64N(200) - 100
		up, down := c.atLeast(x), c.atMost(x)
		if up < x || up >= x+c.step || down > x || down <= x-c.step || mod(up, c.step) != c.rest || mod(down, c.step) != c.rest {
			t.Fatalf("%+v around %d: %d and %d", c, x, down, up)
		}
	}
	if _, ok := (congruence{step: 1<<62 + 1}).and(congruence{step: 1 << 62}); ok {
		t.Error("a step beyond an int64")
	}
}
