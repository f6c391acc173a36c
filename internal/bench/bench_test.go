package bench

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"gm/internal/bench/replay"
)

func TestParseSpecs(t *testing.T) {
	for text, want := range map[string]string{
		"torch":                        "torch",
		"torch,floor":                  "torch|floor",
		"gmlake,frag_limit=4MiB,torch": "gmlake:frag_limit=4MiB|torch",
		"torch:max_split_size_mb=128,garbage_collection_threshold=0.8,gmlake": "torch:max_split_size_mb=128,garbage_collection_threshold=0.8|gmlake",
		"torch:roundup_power2_divisions=[256:1,>:4],native":                   "torch:roundup_power2_divisions=[256:1,>:4]|native",
		"torch:expandable_segments:True,roundup_power2_divisions:[256:1,>:4],native": "torch:expandable_segments:True," +
			"roundup_power2_divisions:[256:1,>:4]|native",
		"gmlake:frag_limit=128MiB,stitch_limit=80GiB,gmlake-code:fragLimit=1GiB": "gmlake:frag_limit=128MiB,stitch_limit=80GiB|" +
			"gmlake-code:fragLimit=1GiB",
	} {
		specs, err := ParseSpecs(text)
		var got []string
		for _, s := range specs {
			got = append(got, s.Text)
		}
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("ParseSpecs(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "nothing", "torch,nothing:x=1", "max_split_size_mb=128", "torch:max_split_size_mb=3", "gmlake:no_limit=1", "gmlake:frag_limit=much", "floor:x=1",
		"gmlake-code:reuseLimit=x", "gmlake-code:reuseLimit=NaN", "gmlake-code:autoGC=1GiB", "gmlake-code:autoGC=-5", "native:x=1", "planned:x=1",
	} {
		if specs, err := ParseSpecs(text); err == nil {
			t.Errorf("ParseSpecs(%q) = %v, want an error", text, specs)
		}
	}
}

// TestCompare replays the recorded ResNet-152 through all allocators.
func TestCompare(t *testing.T) {
	programs, err := replay.Open("../../testdata/resnet152-V.parquet")
	if err != nil {
		t.Fatal(err)
	}
	var replays atomic.Int64
	rows, err := Compare(context.Background(), programs[:1], AllSpecs(), 0, func() { replays.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	if n := replays.Load(); int(n) != len(AllSpecs()) {
		t.Errorf("%d replays reported done, want %d", n, len(AllSpecs()))
	}
	by := map[string]*Row{}
	for i := range rows {
		by[rows[i].Allocator] = &rows[i]
	}
	if len(by) != len(AllSpecs()) {
		t.Fatalf("%d rows for %d allocators", len(by), len(AllSpecs()))
	}
	if got := by["floor"].PeakReserved; got != 24320833536 {
		t.Errorf("floor is %d, want 24320833536", got)
	}
	for name, row := range by {
		if row.PeakReserved < by["floor"].PeakReserved {
			t.Errorf("%s reserves less than what is live", name)
		}
		if row.OOM != nil || row.Retries != 0 {
			t.Errorf("%s on a device without end: %+v", name, row)
		}
	}
	if got := by["planned"].PeakReserved; got > 24320833536+2<<20 {
		t.Errorf("planned reserves %d, its plan is at the bound", got)
	}
	if want := 1 - 24467472384.0/34183577600; math.Abs(*by["expandable"].Reduction-want) > 1e-12 {
		t.Errorf("reduction %f, want %f", *by["expandable"].Reduction, want)
	}
}

// TestBaselineUnasked: reductions are against torch, whether or not torch is one of the allocators to compare.
func TestBaselineUnasked(t *testing.T) {
	programs, err := replay.Open("../../testdata/resnet152-V.parquet")
	if err != nil {
		t.Fatal(err)
	}
	ratios := map[string]float64{}
	for _, text := range []string{"expandable", "torch,expandable", "expandable,torch"} {
		specs, err := ParseSpecs(text)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := Compare(context.Background(), append(programs[:1:1], programs[0]), specs, 0, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2*len(specs) {
			t.Fatalf("%s: %d rows", text, len(rows))
		}
		for i, r := range rows {
			if r.Allocator != specs[i%len(specs)].Text {
				t.Errorf("%s: row %d is of %s", text, i, r.Allocator)
			}
			if r.Allocator == "expandable" {
				ratios[text] = *r.Reduction
			} else if *r.Reduction != 0 {
				t.Errorf("%s: torch against itself: %f", text, *r.Reduction)
			}
		}
	}
	if want := 1 - 24467472384.0/34183577600; math.Abs(ratios["expandable"]-want) > 1e-12 {
		t.Errorf("reduction %f, want %f", ratios["expandable"], want)
	}
	for text, got := range ratios {
		if got != ratios["expandable"] {
			t.Errorf("%s: reduction %f", text, got)
		}
	}
}

// TestPyTorch compares the bundled runs with the statistics that PyTorch reported for them, and for runs of the same scripts with
// expandable_segments.
func TestPyTorch(t *testing.T) {
	specs, err := ParseSpecs("torch,expandable")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ allocated, reserved, expandable int64 }{
		"opt13b-LRV":          {41888643072, 67050143744, 44428165120},
		"opt13b-fsdp4-LRV-r0": {22070281216, 31528583168, 25740443648},
		"resnet152-V":         {24338462720, 34183577600, 24467472384},
	} {
		programs, err := replay.Open("../../testdata/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		rows, err := Compare(context.Background(), programs, specs, 0, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if torch := rows[0]; torch.PeakAllocated != want.allocated || torch.PeakReserved != want.reserved {
			t.Errorf("%s: torch allocates %d and reserves %d, PyTorch %d and %d", name, torch.PeakAllocated, torch.PeakReserved,
				want.allocated, want.reserved)
		}
		if got := rows[1].PeakReserved; got != want.expandable {
			t.Errorf("%s: expandable reserves %d, PyTorch %d", name, got, want.expandable)
		}
	}
}

// TestCapacity gives every allocator less than is live at the peak: none may succeed, or take more than there is.
func TestCapacity(t *testing.T) {
	programs, err := replay.Open("../../testdata/resnet152-V.parquet")
	if err != nil {
		t.Fatal(err)
	}
	const capacity = 20 << 30
	rows, err := Compare(context.Background(), programs[:1], AllSpecs(), capacity, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.OOM == nil {
			t.Errorf("%s runs 22.65 GiB in 20", r.Allocator)
			continue
		}
		if r.PeakReserved > capacity || r.OOM.Allocated > r.OOM.Reserved || r.Reduction != nil {
			t.Errorf("%s: %+v, %+v", r.Allocator, r, r.OOM)
		}
	}
	for _, s := range Summarize(rows) {
		if s.OOMs != 1 || s.Traces != 0 {
			t.Errorf("summary %+v", s)
		}
	}
}

func TestSummarize(t *testing.T) {
	ratio := func(x float64) *float64 { return &x }
	rows := []Row{
		{Allocator: "a", PeakReserved: 50, Utilisation: 0.9, DriverShare: 0.01, Reduction: ratio(0.5), baseline: 100},
		{Allocator: "a", PeakReserved: 200, Utilisation: 0.4, DriverShare: 0.04, Reduction: ratio(0), baseline: 200},
		{Allocator: "a", OOM: &OOM{}},
	}
	s := Summarize(rows)[0]
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s %f, want %f", what, got, want)
		}
	}
	near("utilisation", s.Utilisation, 0.6)
	near("driver share", s.DriverShare, 0.02)
	near("reserved", s.Reserved, math.Sqrt(0.5))
	near("reduction", s.Reduction, 50.0/300)
	if s.Traces != 2 || s.OOMs != 1 {
		t.Errorf("%d traces, %d out of memory", s.Traces, s.OOMs)
	}
}
