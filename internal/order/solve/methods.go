package solve

import (
	"context"
	"fmt"
	"strings"

	"gm/internal/order"
	"gm/internal/order/greedy"
	"gm/internal/order/papers"
)

// Method is a way to find an order.
type Method struct {
	Name  string
	About string // one line
	find  func(context.Context, *order.Links, Options) (*Result, error)
}

// Methods lists the methods, the default first.
func Methods() []Method {
	return []Method{
		{"auto", "rules in both directions, improved by minimum cuts and by exact search around the peak, then random starts; proves a lower bound",
			func(ctx context.Context, l *order.Links, o Options) (*Result, error) { return Order(ctx, l, o), nil }},
		{"program", "the order of the program", only("program", func(l *order.Links) []int32 { return order.Program(l.Problem.Ops()) })},
		{"eager-free", "the first operator of the program that gives back more than it takes and fits below the peak so far, else the first",
			only("eager-free", func(l *order.Links) []int32 { return greedy.Order(l, greedy.EagerFree) })},
		{"lpmf", "the operator that leaves the least in memory, of those that fit below the peak so far (Inductor)",
			only("lpmf", func(l *order.Links) []int32 { return greedy.Order(l, greedy.LeastPeak) })},
		{"model", "the optimum by exact search, for graphs of up to 256 operators: MODeL; --lp writes its integer program", model},
		{"roam", "updates behind their gradients where there is room, the rest in segments between key points, each solved alone: ROAM", roam},
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
// The error of method model wraps [papers.ErrLarge].
func (m Method) Find(ctx context.Context, l *order.Links, options Options) (*Result, error) {
	return m.find(ctx, l, options)
}

func model(ctx context.Context, l *order.Links, o Options) (*Result, error) {
	made, err := papers.MODeL(ctx, l, o.States)
	if err != nil {
		return nil, err
	}
	r := judged(ctx, l, made, "model")
	r.Bound = r.Peak
	return r, nil
}

func roam(ctx context.Context, l *order.Links, _ Options) (*Result, error) {
	return judged(ctx, l, papers.ROAM(ctx, l), "roam"), nil
}

// only returns a method that makes one order.
func only(name string, find func(*order.Links) []int32) func(context.Context, *order.Links, Options) (*Result, error) {
	return func(ctx context.Context, l *order.Links, _ Options) (*Result, error) {
		return judged(ctx, l, find(l), name), nil
	}
}

// judged returns an order with its peak and a lower bound.
func judged(ctx context.Context, l *order.Links, made []int32, name string) *Result {
	s := newSearch(l, Options{})
	s.best.Order, s.best.Method = made, name
	s.best.Peak, _ = order.Peak(l.Loads(made))
	s.raise(ctx)
	return s.best
}
