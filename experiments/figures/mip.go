package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/lp"
	"gm/internal/dsa/solvers"
)

// Problems of up to so many buffers are solved as mixed integer programs. Each conflict is a variable of two values: with twice as
// many, these solvers take minutes.
const (
	mipBuffers  = 20
	mipProblems = 50
	mipTime     = time.Minute // for each
)

// mip is a solver of mixed integer programs.
type mip struct {
	name    string
	args    func(model, solution string) []string
	optimum *regexp.Regexp // in the solution
}

func mips() []mip {
	return []mip{
		{"glpsol", func(model, solution string) []string { return []string{"--lp", model, "--write", solution} },
			regexp.MustCompile(`(?m)^s mip \d+ \d+ o (\S+)$`)},
		{"cbc", func(model, solution string) []string { return []string{model, "solve", "solution", solution} },
			regexp.MustCompile(`^Optimal - objective value (\S+)`)},
	}
}

// measureMIP compares the exact solver with those of mixed integer programs that are installed.
func measureMIP(e *experiment) error {
	exact, err := solvers.Lookup("exact")
	if err != nil {
		return err
	}
	problems := sparseProblems()
	least := make([]int64, len(problems))
	start := time.Now()
	for i, p := range problems {
		l, err := exact.Solve(context.Background(), p, dsa.Options{Workers: 1})
		if err != nil || !l.Optimal() {
			return fmt.Errorf("exact: problem %d: a peak of %d, a bound of %d, %w", i, l.Peak, l.Bound, err)
		}
		least[i] = l.Peak
	}
	took := time.Since(start)
	for _, m := range mips() {
		name := fmt.Sprintf("small by exact and %s", m.name)
		if _, err := exec.LookPath(m.name); err != nil {
			e.table.Add(name, m.name+" is not installed", "", "not measured")
			continue
		}
		same, theirs, err := m.compare(e.dir, problems, least)
		if err != nil {
			return err
		}
		e.add(name, fmt.Sprintf("%d equal; exact %.1f ms, %s %.1f s", same, milliseconds(took), m.name, theirs.Seconds()),
			fmt.Sprintf("all %d", len(problems)), same == len(problems))
	}
	return nil
}

// sparseProblems returns problems with few conflicts.
func sparseProblems() []*dsa.Problem {
	rng := rand.New(rand.NewPCG(1, 1))
	problems := make([]*dsa.Problem, mipProblems)
	for i := range problems {
		n := 8 + i%(mipBuffers-7)
		p := &dsa.Problem{Align: 1}
		for range n {
			start := rng.Int64N(int64(n * n / 4))
			p.Start, p.End = append(p.Start, start), append(p.End, start+1+rng.Int64N(10))
			p.Size = append(p.Size, 1+rng.Int64N(100))
		}
		problems[i] = p
	}
	return problems
}

// compare returns how many of the problems have the least peak that is expected, and what all took.
func (m mip) compare(dir string, problems []*dsa.Problem, least []int64) (same int, took time.Duration, err error) {
	for i, p := range problems {
		peak, t, err := m.solve(dir, p)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: problem %d: %w", m.name, i, err)
		}
		if took += t; peak == least[i] {
			same++
		}
	}
	return same, took, nil
}

// solve returns the least peak of a problem, in bytes.
func (m mip) solve(dir string, p *dsa.Problem) (peak int64, took time.Duration, err error) {
	model, solution := filepath.Join(dir, m.name+".lp"), filepath.Join(dir, m.name+".solution")
	if err := writeLP(model, p); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), mipTime)
	defer cancel()
	start := time.Now()
	said, err := exec.CommandContext(ctx, m.name, m.args(model, solution)...).CombinedOutput()
	took = time.Since(start)
	if err != nil {
		return 0, 0, fmt.Errorf("%w\n%s", err, said)
	}
	found, err := os.ReadFile(solution)
	if err != nil {
		return 0, 0, err
	}
	match := m.optimum.FindSubmatch(found)
	if match == nil {
		return 0, 0, fmt.Errorf("no optimum in\n%s", found)
	}
	units, err := strconv.ParseFloat(string(match[1]), 64)
	return int64(units+0.5) * p.Align, took, err
}

func writeLP(file string, p *dsa.Problem) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(lp.Write(f, p, 0), f.Close())
}
