package lp

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
)

// mip is a solver of mixed integer programs.
type mip struct {
	name     string
	args     func(model, solution string) []string
	optimum  *regexp.Regexp // in the solution
	hopeless *regexp.Regexp // in the solution or the output: there is no layout
}

var mips = []mip{
	{"glpsol", func(model, solution string) []string { return []string{"--lp", model, "--write", solution} },
		regexp.MustCompile(`(?m)^s mip \d+ \d+ o (\S+)$`), regexp.MustCompile(`(?m)^s mip \d+ \d+ n |HAS NO (PRIMAL|INTEGER) FEASIBLE SOLUTION`)},
	{"cbc", func(model, solution string) []string { return []string{model, "solve", "solution", solution} },
		regexp.MustCompile(`^Optimal - objective value (\S+)`), regexp.MustCompile(`(?i)infeasible`)},
}

// infeasible is the peak when there is no layout.
const infeasible = -1

// solve returns the least peak, in bytes.
func (s mip) solve(t *testing.T, p *dsa.Problem, capacity int64) int64 {
	t.Helper()
	dir := t.TempDir()
	model, solution := filepath.Join(dir, "model.lp"), filepath.Join(dir, "solution")
	var text bytes.Buffer
	if err := Write(&text, p, capacity); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, s.name, s.args(model, solution)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, said, text.Bytes())
	}
	found, _ := os.ReadFile(solution)
	if match := s.optimum.FindSubmatch(found); match != nil {
		peak, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return int64(peak+0.5) * p.Align
	}
	if !s.hopeless.Match(found) && !s.hopeless.Match(said) {
		t.Fatalf("no result\n%s\n%s\n%s", said, found, text.Bytes())
	}
	return infeasible
}

// forEachMIP runs a test with every MIP solver at hand.
func forEachMIP(t *testing.T, test func(t *testing.T, s mip)) {
	for _, s := range mips {
		t.Run(s.name, func(t *testing.T) {
			if _, err := exec.LookPath(s.name); err != nil {
				t.Skipf("%s is not installed", s.name)
			}
			test(t, s)
		})
	}
}

// TestAgainstAllLayouts compares the optimum of small models with the best of all layouts.
func TestAgainstAllLayouts(t *testing.T) {
	forEachMIP(t, func(t *testing.T, s mip) {
		r := rand.New(rand.NewPCG(3, 4))
		for round := range 40 {
			p := random(r, 3+r.IntN(4), 20)
			if round >= 10 {
				for valid := p; p == valid || p.Validate() != nil; {
					p = odd(r, *valid)
				}
			}
			want := best(p)
			if got := s.solve(t, p, 0); got != want {
				t.Errorf("%+v: %d, expected %d", p, got, want)
			}
			if want == infeasible {
				continue
			}
			if got := s.solve(t, p, want); got != want {
				t.Errorf("%+v with that capacity: %d, expected %d", p, got, want)
			}
			if got := s.solve(t, p, want-p.Align); got != infeasible {
				t.Errorf("%+v with less: %d, expected none", p, got)
			}
		}
	})
}

// TestAgainstExact compares the optimum of models of up to 20 buffers and about 20 conflicts with that of a solver
// that proves it. With 40 conflicts, MIP solvers take minutes.
func TestAgainstExact(t *testing.T) {
	exact, err := solvers.Lookup("exact")
	if err != nil {
		t.Skip(err)
	}
	forEachMIP(t, func(t *testing.T, s mip) {
		r := rand.New(rand.NewPCG(5, 6))
		for n := 8; n <= 20; n++ {
			for range 3 {
				p := random(r, n, int64(n*n/4))
				layout, err := exact.Solve(t.Context(), p, dsa.Options{})
				if err != nil || !layout.Optimal() {
					t.Fatalf("%+v: peak %d, bound %d, %v", p, layout.Peak, layout.Bound, err)
				}
				if got := s.solve(t, p, 0); got != layout.Peak {
					t.Errorf("%+v: %d, expected %d", p, got, layout.Peak)
				}
			}
		}
	})
}

// odd returns the problem with optional columns.
func odd(r *rand.Rand, p dsa.Problem) *dsa.Problem {
	if r.IntN(2) == 0 {
		p.Period = 10 + r.Int64N(20)
	}
	if r.IntN(2) == 0 {
		p.Fixed = make([]int64, p.Len())
		for i := range p.Fixed {
			p.Fixed[i] = dsa.Free
		}
		p.Fixed[r.IntN(p.Len())] = 16 * r.Int64N(6)
	}
	if r.IntN(2) == 0 {
		p.Aligns = make([]int64, p.Len())
		p.Aligns[0], p.Aligns[1] = 32, 24
	}
	if r.IntN(2) == 0 {
		p.Ties = []dsa.Tie{{A: 0, B: 2, Delta: 16 * (r.Int64N(7) - 3)}}
	}
	return &p
}

// best returns the least peak of all layouts, in bytes.
func best(p *dsa.Problem) int64 {
	offsets := make([]int64, p.Len())
	for height := int64(0); height <= 16*60; height += 16 {
		if fits(p, offsets[:0], height) {
			return height
		}
	}
	return infeasible
}

// fits reports whether the buffers after those with an offset fit below height.
func fits(p *dsa.Problem, offsets []int64, height int64) bool {
	i := int32(len(offsets))
	if int(i) == p.Len() {
		return true
	}
	for at := int64(0); at+p.Size[i] <= height; at += p.Align {
		if next := append(offsets, at); allowed(p, next, i) && fits(p, next, height) {
			return true
		}
	}
	return false
}

// allowed reports whether buffer i, the last one with an offset, may have that offset.
func allowed(p *dsa.Problem, offsets []int64, i int32) bool {
	at := offsets[i]
	if p.Fixed != nil && p.Fixed[i] != dsa.Free && p.Fixed[i] != at || p.Aligns != nil && p.Aligns[i] > 0 && at%p.Aligns[i] != 0 {
		return false
	}
	tied := func(j int32) bool { return false }
	for _, t := range p.Ties {
		tied = func(j int32) bool { return j == t.A && i == t.B }
		if i == t.B && at-offsets[t.A] != t.Delta {
			return false
		}
	}
	for j := range i {
		if !tied(j) && overlap(p, j, i) && at < offsets[j]+p.Size[j] && offsets[j] < at+p.Size[i] {
			return false
		}
	}
	return true
}
