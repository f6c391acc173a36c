package answer

import (
	"math"
	"slices"
	"testing"

	"gm/internal/swap/request"
	"gm/internal/swap/store"
)

// TestRaised has far too little memory for recorded steps: the limit is raised until there is a schedule, with auto as with quick.
func TestRaised(t *testing.T) {
	if testing.Short() {
		t.Skip("it plans for minutes under the race detector")
	}
	raised := 0
	for _, name := range []string{"llama", "resnet50", "convnext"} {
		g, err := store.ReadGraph("../../../testdata/steps/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		peak := slices.Max(g.Plain())
		for _, host := range []int64{math.MaxInt64, peak / 5} {
			for _, tenths := range []int64{1, 3} { // of the peak
				r := &request.Request{Device: peak / 10 * tenths, Host: host, GPUs: 1}
				steps := map[string]string{}
				for _, r.Policy = range []string{"quick", "auto"} {
					made, _, err := choose(r, g.Graph)
					if err != nil {
						steps[r.Policy] = err.Error()
						continue
					}
					steps[r.Policy] = "a schedule"
					if made.Meta.DeviceBudget > r.Device {
						raised++
					}
				}
				if steps["quick"] == "a schedule" && steps["auto"] != steps["quick"] {
					t.Errorf("%s in %d tenths and %d bytes of the host: auto has none: %s", name, tenths, host, steps["auto"])
				}
			}
		}
	}
	if raised == 0 {
		t.Error("no limit was raised")
	}
}
