package policy

import (
	"math"
	"slices"
	"testing"

	"gm/internal/swap"
	"gm/internal/swap/store"
)

// TestPrompt has a schedule where quick has one, that of quick where none is found for this very amount of memory, and none where quick has none.
// On recorded steps it is little slower than that.
func TestPrompt(t *testing.T) {
	prompt, err := Lookup(promptName)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := Lookup(quickName)
	if err != nil {
		t.Fatal(err)
	}
	solved := 0
	for seed := range uint64(60) {
		g, l := randomProblem(seed, 25)
		got, want := try(t, prompt, g, l), try(t, quick, g, l)
		if (got == nil) != (want == nil) {
			t.Fatalf("seed %d: prompt %v, quick %v", seed, got, want)
		}
		if got != nil {
			solved++
		}
	}
	if solved < 20 {
		t.Errorf("%d problems have schedules", solved)
	}
	for _, name := range []string{"vit", "llama", "resnet50"} {
		recorded, err := store.ReadGraph("../../../testdata/steps/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		g, l := recorded.Graph, swap.Limits{Host: math.MaxInt64, Link: pcie}
		for _, part := range []float64{0.8, 0.5} {
			l.Device = int64(part * float64(slices.Max(g.Plain())))
			got, want := try(t, prompt, g, l), try(t, quick, g, l)
			if got == nil || want == nil || float64(got.result.Step) > 1.03*float64(want.result.Step) {
				t.Errorf("%s in %g of the memory: prompt %+v, quick %+v", name, part, got, want)
			}
		}
	}
}
