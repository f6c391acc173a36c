package damage

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"

	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/bench/replay"
	"gm/internal/plan/check"
	"gm/internal/plan/layout"
)

func plans(t *testing.T) kind {
	files := map[string][]byte{}
	for _, name := range []string{"settings/pools", "captures/opt1.3b", "opt13b-LRV"} {
		part := head(t, "../../testdata/"+name+".parquet", 300)
		r, err := trace.NewReader(bytes.NewReader(part), int64(len(part)), name)
		if err != nil {
			t.Fatal(err)
		}
		tensors, err := layout.Collect(r)
		if err != nil {
			t.Fatal(err)
		}
		p, err := layout.Solve(t.Context(), tensors, layout.Options{Solver: "skyline-Z"})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := plan.NewWriter(&out, p.Meta)
		if err := errors.Join(p.Write(w), w.Close()); err != nil {
			t.Fatal(err)
		}
		files[name] = out.Bytes()
	}
	return kind{"plan", files, usePlanFile, []string{"arena", "d0.iteration", "arena.iteration", "step", "max_split_size_mb:20", "[0,1,2]", "[0,4096,1152921504606846976]"}}
}

// usePlanFile does what gmplan check and gmbench do with a plan.
func usePlanFile(t *testing.T, rng *rand.Rand, file string) (err error) {
	r, err := plan.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	report, err := check.Check(r, nil)
	if err != nil {
		return err
	}
	checkPlaces(t, file, &report)
	again, err := plan.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, again.Close()) }()
	programs, err := replay.LoadPlan(again)
	if err != nil || len(programs) == 0 {
		return err
	}
	return compareAllocators(t, rng, programs)
}

// checkPlaces compares each tensor of an accepted plan with each other, and the peak with the sum of the ends.
func checkPlaces(t *testing.T, file string, report *check.Report) {
	r, err := plan.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	type arena struct {
		device int32
		name   string
	}
	var all []plan.Tensor
	ends := map[arena]*big.Int{}
	err = plan.Each(r, func(p *plan.Tensor) error {
		all = append(all, *p)
		key := arena{p.Device, r.Strings().Text(p.Arena)}
		end := new(big.Int).Add(big.NewInt(p.Offset), rounded(p.Size, r.Meta().Alignment))
		if ends[key] == nil || end.Cmp(ends[key]) > 0 {
			ends[key] = end
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := new(big.Int)
	for _, end := range ends {
		sum.Add(sum, end)
	}
	if sum.Cmp(big.NewInt(r.Meta().Peak)) != 0 || report.Peak != r.Meta().Peak {
		t.Errorf("a peak of %d is accepted, the arenas end at %v", r.Meta().Peak, sum)
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if a.Device == b.Device && a.Arena == b.Arena && a.Alloc < b.Free && b.Alloc < a.Free && a.Offset < b.Offset+b.Size && b.Offset < a.Offset+a.Size {
				t.Errorf("accepted though %+v overlaps %+v", a, b)
			}
		}
	}
}

func rounded(size, alignment int64) *big.Int {
	one, n := big.NewInt(1), big.NewInt(alignment)
	up := new(big.Int).Add(big.NewInt(size), n)
	return up.Mul(up.Div(up.Sub(up, one), n), n)
}
