package solve

import (
	"context"
	"fmt"
	"strings"

	"gm/internal/order"
	"gm/internal/order/greedy"
)

// Method is a way to find an order.
type Method struct {
	Name  string
	About string // one line
	find  func(context.Context, *order.Links, Options) *Result
}

// Methods lists the methods, the default first.
func Methods() []Method {
	return []Method{
		{"auto", "rules in both directions, improved by minimum cuts and by exact search around the peak, then random starts; proves a lower bound", Order},
		{"program", "the order of the program", only("program", func(l *order.Links) []int32 { return order.Program(l.Problem.Ops()) })},
		{"eager-free", "the first operator of the program that gives back more than it takes and fits below the peak so far, else the first",
			only("eager-free", func(l *order.Links) []int32 { return greedy.Order(l, greedy.EagerFree) })},
		{"lpmf", "the operator that leaves the least in memory, of those that fit below the peak so far (Inductor)",
			only("lpmf", func(l *order.Links) []int32 { return greedy.Order(l, greedy.LeastPeak) })},
	}
}

// Lookup returns the method of a name.
func Lookup(name string) (Method, error) {
	var names []string
	for _, m := range Methods() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Method{}, fmt.Errorf("unknown solver %q, expected one of %s", name, strings.Join(names, ", "))
}

// Find returns an order of a problem and a lower bound. The context's end ends the search, which then returns the best order so far.
func (m Method) Find(ctx context.Context, l *order.Links, options Options) *Result {
	return m.find(ctx, l, options)
}

// only returns a method that makes one order.
func only(name string, find func(*order.Links) []int32) func(context.Context, *order.Links, Options) *Result {
	return func(_ context.Context, l *order.Links, options Options) *Result {
		s := newSearch(l, options)
		s.best.Order, s.best.Method = find(l), name
		s.best.Peak, _ = order.Peak(l.Loads(s.best.Order))
		s.raise()
		return s.best
	}
}
