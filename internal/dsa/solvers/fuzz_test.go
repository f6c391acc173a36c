package solvers

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
)

// odd converts bytes to a problem: the first four choose its properties, then there are five per buffer.
func odd(data []byte) (*dsa.Problem, dsa.Options) {
	p, o := &dsa.Problem{Align: 1}, dsa.Options{Workers: 1}
	if len(data) < 4 {
		return p, o
	}
	with, units := dsatest.Feature(data[0])&dsatest.WithAll, int64(1)<<(data[1]%58)
	p.Align = [...]int64{1, 2, 3, 8, 512, 1 << 20}[data[0]/16%6]
	p.Period = int64(data[0]) & int64(dsatest.WithPeriod) * int64(1+data[2]%32)
	o = dsa.Options{Seed: uint64(data[3]), Workers: 1 + int(data[3]%3), Capacity: int64(data[3]/8) * units}
	for data = data[4:]; len(data) >= 5 && p.Len() < 24; data = data[5:] {
		start := int64(int8(data[0]) / 4)
		dsatest.Add(p, start, start+int64(data[1]%24), int64(data[2]%32)*units+int64(data[2]/128))
		if with&dsatest.WithAligns != 0 {
			p.Aligns = append(p.Aligns, [...]int64{0, 1, 2, 6, 16, units}[data[3]%6])
		}
		if with&dsatest.WithFixed != 0 {
			p.Fixed = append(p.Fixed, dsa.Free)
			if data[3] >= 192 {
				p.Fixed[p.Len()-1] = int64(data[4]) * p.Align
			}
		}
		if with&dsatest.WithTies != 0 && data[4] >= 128 {
			a, b := int32(p.Len()-1), int32(data[4]%8)
			p.Ties = append(p.Ties, dsa.Tie{A: a, B: b, Delta: p.Align * [...]int64{0, p.Units(int(a)), 5, -units}[data[3]%4]})
		}
	}
	return p, o
}

// FuzzSolvers checks that every solver returns a valid layout of every valid problem in little time, or refuses the kind of
// problem, and that no bound is above the peak of another solver.
func FuzzSolvers(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 8, 3, 0, 0, 8, 8, 5, 0, 0, 16, 4, 2, 0, 0})
	f.Add([]byte{15, 4, 9, 80, 0, 8, 3, 200, 200, 8, 8, 5, 4, 129, 16, 4, 2, 3, 130, 20, 9, 7, 4, 0})
	f.Add([]byte("0123456789012345678901234567890123456789"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, o := odd(data)
		again, _ := odd(data)
		if p.Validate() != nil {
			return
		}
		var lowest, proven dsa.Layout
		for _, e := range All() {
			l, err := late(t, e.Solver, p, o)
			if errors.Is(err, dsa.ErrInvalid) && !p.Plain() && e.Name != "auto" && e.Name != "general" {
				continue
			}
			if err == nil {
				err = dsa.Check(p, l)
			}
			if err != nil || !reflect.DeepEqual(p, again) {
				t.Fatalf("%s: %v\n%+v", e.Name, err, p)
			}
			if lowest.Offsets == nil || l.Peak < lowest.Peak {
				lowest = l
			}
			if l.Bound > proven.Bound {
				proven = l
			}
			if proven.Bound > lowest.Peak {
				t.Fatalf("a bound of %d by %s, a peak of %d by %s\n%+v", proven.Bound, proven.Method, lowest.Peak, lowest.Method, p)
			}
		}
	})
}

// late gives a solver less time than it may need.
func late(t *testing.T, s dsa.Solver, p *dsa.Problem, o dsa.Options) (dsa.Layout, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
	defer cancel()
	return s.Solve(ctx, p, o)
}
