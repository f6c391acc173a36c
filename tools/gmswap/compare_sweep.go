package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
	"gm/internal/units"
)

// sweep is a graph under each of some policies with each of some amounts of memory.
type sweep struct {
	graph    *store.Graph
	policies []policy.Policy
	limits   scheduling.Limits // but for the device
	budgets  []int64
	bounds   []bound // by budget
	outcomes [][]outcome
	plain    *simulate.Result
}

// bound is a time that no schedule is faster than, if there can be any.
type bound struct {
	step time.Duration
	any  bool
}

// outcome is the result of a policy for an amount of memory.
type outcome struct {
	*simulate.Result                    // nil if it has no schedule
	short            *policy.ShortError // then
}

func newSweep(g *store.Graph, policies []policy.Policy, limits scheduling.Limits) *sweep {
	return &sweep{graph: g, policies: policies, limits: limits}
}

// over sets the amounts of memory.
func (s *sweep) over(all span) (err error) {
	if s.budgets, err = all.budgets(s.graph.Graph); err != nil {
		return err
	}
	s.bounds = make([]bound, len(s.budgets))
	s.outcomes = make([][]outcome, len(s.policies))
	for i := range s.outcomes {
		s.outcomes[i] = make([]outcome, len(s.budgets))
	}
	return nil
}

// run makes all schedules, on all cores. Done is called after each.
func (s *sweep) run(done func()) (err error) {
	if s.plain, err = simulate.Run(s.graph.Graph, nil, s.limits.Copies(), nil); err != nil {
		return err
	}
	for b := range s.budgets {
		step, ok := policy.LowerBound(s.graph.Graph, swap.Limits{Device: s.budgets[b], Host: s.limits.Host, Link: s.limits.Copies()})
		s.bounds[b] = bound{step, ok}
	}
	var wait sync.WaitGroup
	cores := make(chan struct{}, runtime.GOMAXPROCS(0))
	errs := make([]error, len(s.policies)*len(s.budgets))
	for _, j := range s.jobs() {
		cores <- struct{}{}
		wait.Go(func() {
			scheduling.MakeEach(s.graph.Graph, s.policies[j.policy], s.limits, s.budgets[j.from:j.end], func(i int, m *scheduling.Made, err error) {
				b := j.from + i
				s.outcomes[j.policy][b], errs[j.policy*len(s.budgets)+b] = outcomeOf(m, err)
				done()
			})
			<-cores
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// job is the schedules of a policy with some amounts of memory, which one core makes.
type job struct{ policy, from, end int }

// jobs lists all, the largest first.
func (s *sweep) jobs() []job {
	var all []job
	for p := range s.policies {
		if s.policies[p].Shares() {
			all = append(all, job{p, 0, len(s.budgets)})
			continue
		}
		for b := range s.budgets {
			all = append(all, job{p, b, b + 1})
		}
	}
	slices.SortStableFunc(all, func(a, b job) int { return (b.end - b.from) - (a.end - a.from) })
	return all
}

// outcomeOf returns the result of a schedule, or that there is none.
func outcomeOf(m *scheduling.Made, err error) (outcome, error) {
	if short, ok := errors.AsType[*policy.ShortError](err); ok {
		return outcome{short: short}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	return outcome{Result: m.Moved}, nil
}

// print prints a table of times and one of peaks.
func (s *sweep) print(w io.Writer) error {
	what := fmt.Sprintf("%s%s: %s and %s with nothing moved\n\n", s.graph.Name, on(s.graph.Device), timeText(s.plain.Step), units.Bytes(s.plain.Peak))
	if _, err := io.WriteString(w, report.Printable(what[:len(what)-2])+"\n\n"); err != nil {
		return err
	}
	times := s.table("step", func(r *simulate.Result) string { return timeText(r.Step) })
	bounds := []string{"lower bound"}
	for _, b := range s.bounds {
		text := "-"
		if b.any {
			text = timeText(b.step)
		}
		bounds = append(bounds, text)
	}
	times.Add(bounds...)
	if err := times.Write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return s.table("peak", func(r *simulate.Result) string { return units.Bytes(r.Peak).String() }).Write(w)
}

// table makes a table of the results of policies.
func (s *sweep) table(title string, text func(*simulate.Result) string) *report.Table {
	t := &report.Table{Titles: []string{title}}
	for _, b := range s.budgets {
		t.Titles = append(t.Titles, units.Bytes(b).String())
	}
	for p := range s.policies {
		cells := []string{s.policies[p].Name}
		for b := range s.budgets {
			cell := "-"
			if r := s.outcomes[p][b].Result; r != nil {
				cell = text(r)
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	return t
}

// chart draws the time of a step over its peak: a line for each policy, and one of the lower bound.
func (s *sweep) chart() report.Tradeoff {
	scale, name := units.Bytes(s.plain.Peak).Unit()
	t := report.Tradeoff{
		Title: s.graph.Name + ": time and memory of a step", X: "peak in use on the device, " + name, Y: "step, in parts of one with nothing moved",
	}
	part := func(step time.Duration) float64 { return float64(step) / float64(max(1, s.plain.Step)) }
	limit := report.Curve{Name: "lower bound", Limit: true}
	for b := range s.budgets {
		if s.bounds[b].any {
			limit.X, limit.Y = append(limit.X, float64(s.budgets[b])/scale), append(limit.Y, part(s.bounds[b].step))
		}
	}
	for p := range s.policies {
		curve := report.Curve{Name: s.policies[p].Name}
		for _, r := range slices.Backward(s.outcomes[p]) { // with less memory, more to the left
			if r.Result != nil {
				curve.X, curve.Y = append(curve.X, float64(r.Peak)/scale), append(curve.Y, part(r.Step))
			}
		}
		t.Curves = append(t.Curves, curve)
	}
	t.Curves = append(t.Curves, limit)
	return t
}
