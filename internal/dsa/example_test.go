package dsa_test

import (
	"context"
	"fmt"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
)

// Three buffers fit in less than the sum of their sizes, because the second and the third never live at the same time.
func Example() {
	p := &dsa.Problem{
		Start: []int64{0, 1, 3},
		End:   []int64{4, 3, 5},
		Size:  []int64{1000, 600, 512}, // bytes
		Align: 512,
	}
	layout, err := solvers.Auto().Solve(context.Background(), p, dsa.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("offsets", layout.Offsets)
	fmt.Println("peak", layout.Peak, "optimal", layout.Optimal())
	fmt.Println("check", dsa.Check(p, layout))
	// Output:
	// offsets [0 1024 1024]
	// peak 2048 optimal true
	// check <nil>
}

// With a capacity, the question is whether the buffers fit. Here the bound of the layout proves that they do not.
func ExampleOptions_capacity() {
	p := &dsa.Problem{Start: []int64{0, 1}, End: []int64{2, 3}, Size: []int64{600, 600}, Align: 1}
	layout, err := solvers.Auto().Solve(context.Background(), p, dsa.Options{Capacity: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("at least", layout.Bound)
	// Output: at least 1200
}

// Training repeats: a buffer may live on into the next iteration. The output of an operator that works in place has the address of its input.
func ExampleProblem() {
	p := &dsa.Problem{
		Start:  []int64{0, 2, 8},
		End:    []int64{3, 5, 12}, // the last one ends at 2 of the next iteration
		Size:   []int64{4096, 4096, 2048},
		Align:  512,
		Period: 10,
		Ties:   []dsa.Tie{{A: 0, B: 1}}, // same address, although they overlap in time
	}
	if err := p.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	solver, err := solvers.Lookup("pairs")
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := solver.Solve(context.Background(), p, dsa.Options{})
	fmt.Println(layout.Peak, layout.Optimal(), err)
	// Output: 6144 true <nil>
}
