package dsa_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *dsa.Problem)
		says   string // "" when it is valid
	}{
		{"plain", func(p *dsa.Problem) {}, ""},
		{"all there is", func(p *dsa.Problem) {
			p.Aligns, p.Fixed, p.Ties, p.Period = []int64{0, 1, 512}, []int64{dsa.Free, 0, dsa.Free}, []dsa.Tie{{A: 0, B: 2, Delta: 256}}, 10
		}, ""},
		{"short alignments", func(p *dsa.Problem) { p.Aligns = []int64{1} }, "alignments"},
		{"negative alignment", func(p *dsa.Problem) { p.Aligns = []int64{0, -1, 0} }, "buffer 1 has alignment"},
		{"short fixed", func(p *dsa.Problem) { p.Fixed = []int64{1} }, "fixed offsets"},
		{"fixed below 0", func(p *dsa.Problem) { p.Fixed = []int64{dsa.Free, dsa.Free, -2} }, "buffer 2 is fixed at -2"},
		{"fixed and not aligned", func(p *dsa.Problem) { p.Fixed = []int64{dsa.Free, dsa.Free, 100} }, "buffer 2 is fixed at 100"},
		{"fixed and not aligned as it wants", func(p *dsa.Problem) {
			p.Aligns, p.Fixed = []int64{0, 0, 1024}, []int64{dsa.Free, dsa.Free, 256}
		}, "buffer 2 is fixed at 256"},
		{"fixed and overlap", func(p *dsa.Problem) { p.Fixed = []int64{512, dsa.Free, 256} }, "buffers 0 and 2"},
		{"fixed and apart", func(p *dsa.Problem) { p.Fixed = []int64{1024, dsa.Free, 256} }, ""},
		{"fixed too far up", func(p *dsa.Problem) { p.Fixed = []int64{math.MaxInt64 &^ 255, dsa.Free, dsa.Free} }, "too far up"},
		{"overlap through a tie", func(p *dsa.Problem) {
			p.Fixed, p.Ties = []int64{0, dsa.Free, 512}, []dsa.Tie{{A: 0, B: 1, Delta: 512}}
		}, "buffers"},
		{"tie of nothing", func(p *dsa.Problem) { p.Ties = []dsa.Tie{{A: 0, B: 3, Delta: 0}} }, "buffers 0 and 3"},
		{"tie at odds with the alignment", func(p *dsa.Problem) { p.Ties = []dsa.Tie{{A: 0, B: 1, Delta: 3}} }, "multiple of 256"},
		{"tie too far", func(p *dsa.Problem) { p.Ties = []dsa.Tie{{A: 0, B: 1, Delta: math.MinInt64}} }, "distance"},
		{"ties too far in all", func(p *dsa.Problem) { p.Ties = []dsa.Tie{{A: 0, B: 1, Delta: 1 << 61}, {A: 1, B: 2, Delta: 1 << 61}} }, ""},
		{"ties beyond an int64", func(p *dsa.Problem) {
			p.Align = 1
			p.Ties = []dsa.Tie{{A: 0, B: 1, Delta: math.MaxInt64 / 2}, {A: 1, B: 2, Delta: math.MaxInt64 / 2}}
		}, "reach too far"},
		{"ties in agreement", func(p *dsa.Problem) {
			p.Ties = []dsa.Tie{{A: 0, B: 1, Delta: 256}, {A: 1, B: 2, Delta: 256}, {A: 2, B: 0, Delta: -512}}
		}, ""},
		{"ties in contradiction", func(p *dsa.Problem) {
			p.Ties = []dsa.Tie{{A: 0, B: 1, Delta: 256}, {A: 1, B: 2, Delta: 256}, {A: 2, B: 0, Delta: -256}}
		}, "contradict"},
		{"a tie to itself", func(p *dsa.Problem) { p.Ties = []dsa.Tie{{A: 1, B: 1, Delta: 256}} }, "contradict"},
		{"ties at odds with alignments", func(p *dsa.Problem) {
			p.Aligns, p.Ties = []int64{1024, 1024, 0}, []dsa.Tie{{A: 0, B: 1, Delta: 256}}
		}, "no offset suits"},
		{"ties that alignments allow", func(p *dsa.Problem) {
			p.Aligns, p.Ties = []int64{1024, 768, 0}, []dsa.Tie{{A: 0, B: 1, Delta: 256}}
		}, ""},
		{"fixed at odds with a tie", func(p *dsa.Problem) {
			p.Fixed, p.Ties = []int64{0, 1024, dsa.Free}, []dsa.Tie{{A: 0, B: 1, Delta: 256}}
		}, "ties do not allow"},
		{"fixed with a tie below 0", func(p *dsa.Problem) {
			p.Fixed, p.Ties = []int64{0, dsa.Free, dsa.Free}, []dsa.Tie{{A: 0, B: 1, Delta: -256}}
		}, "ties do not allow"},
		{"fixed with a tie that is not aligned", func(p *dsa.Problem) {
			p.Aligns, p.Fixed, p.Ties = []int64{0, 512, 0}, []int64{0, dsa.Free, dsa.Free}, []dsa.Tie{{A: 0, B: 1, Delta: 256}}
		}, "not aligned where it is fixed"},
		{"negative period", func(p *dsa.Problem) { p.Period = -1 }, "period -1"},
		{"period too long", func(p *dsa.Problem) { p.Period = math.MaxInt64 }, "period"},
		{"longer than the period", func(p *dsa.Problem) { p.Period = 3 }, "buffer 0 lives for 4"},
		{"alignments too great", func(p *dsa.Problem) { p.Aligns = []int64{1 << 62, 1 << 62, 1 << 62} }, "alignments add up"},
	} {
		p := &dsa.Problem{Align: 256}
		dsatest.Add(p, 0, 4, 1000)
		dsatest.Add(p, 4, 6, 100)
		dsatest.Add(p, 1, 5, 700)
		c.change(p)
		err := p.Validate()
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, dsa.ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}
