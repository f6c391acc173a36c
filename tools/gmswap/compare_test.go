package main

import (
	"fmt"
	"testing"

	"gm/internal/swap"
	"gm/internal/units"
)

// chain is two layers whose outputs, of 3 GiB, the backward pass reads in the opposite order.
func chain() *swap.Graph {
	g := &swap.Graph{}
	for op := range int32(4) {
		g.Ops = append(g.Ops, swap.Op{Base: 1 << 30, Duration: 1, Phase: swap.Phase(op / 2)})
	}
	for t := range int32(2) {
		g.Tensors = append(g.Tensors, swap.Tensor{Bytes: 3 << 30, Made: t, Uses: []int32{3 - t}})
	}
	return g
}

func TestBudgets(t *testing.T) {
	for text, want := range map[string]string{
		"":             "[4 GiB 4.34 GiB 4.67 GiB 5 GiB 5.34 GiB 5.67 GiB 6 GiB 6.34 GiB 6.67 GiB 7 GiB]",
		"2.71GiB..3K":  "2.71GiB is more than 3K",
		"4.5GiB..5GiB": "[4.50 GiB 4.56 GiB 4.62 GiB 4.67 GiB 4.73 GiB 4.78 GiB 4.84 GiB 4.89 GiB 4.95 GiB 5 GiB]",
		"7GiB..":       "[7 GiB]",
		"8GiB..":       "-m: 8 GiB is more than the 7 GiB of a step with nothing moved",
		"..4GiB":       "[4 GiB]",
		"6GiB,5GiB,6G": "[5 GiB 6 GiB]",
		"6GiB,":        `"" is not a size such as 40GiB or 512M`,
		"1GiB..0":      "nothing fits in 0 bytes",
	} {
		s, err := parseSpan(text)
		var all []int64
		if err == nil {
			all, err = s.budgets(chain())
		}
		sizes := make([]units.Bytes, len(all))
		for i := range all {
			sizes[i] = units.Bytes(all[i])
		}
		got := fmt.Sprint(sizes)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestRoundUp has what is printed be what is meant.
func TestRoundUp(t *testing.T) {
	for _, bytes := range []int64{1, 1023, 1025, 5_000_001, 1<<30 + 1, 107_367_000_000, 109_522_223_104, 1 << 45} {
		up := roundUp(bytes)
		if again, err := units.ParseBytes(units.Bytes(up).String()); err != nil || int64(again) != up || up < bytes || float64(up) > 1.01*float64(bytes) {
			t.Errorf("%d becomes %d, printed %s, which is %d, %v", bytes, up, units.Bytes(up), again, err)
		}
	}
}
