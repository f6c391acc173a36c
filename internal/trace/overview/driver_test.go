package overview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gm/formats/trace"
)

// given is a row of the driver's level.
func given(op trace.Op, id, size int64, tag string) trace.Event {
	return trace.Event{TimeNS: 1, Op: op, ID: id, Size: size, Level: trace.LevelDriver, Tag: code(tag)}
}

func TestDriver(t *testing.T) {
	o := read(t, []trace.Event{
		given(trace.OpAlloc, 1, 500, "context"),
		given(trace.OpAlloc, 2, 20, "memory by=pytorch"),
		{TimeNS: 1, Op: trace.OpSegmentAlloc, Size: 25},
		{TimeNS: 1, Op: trace.OpAlloc, ID: 3, Size: 9},
		given(trace.OpAlloc, 4, 7000, "pinned by=pytorch"),
		given(trace.OpSegmentAlloc, 0, 64, "pool by=rapids"),
		given(trace.OpAlloc, 5, 50, "pool by=rapids"), // the peak was before it
		given(trace.OpFree, 4, 0, "pinned by=pytorch"),
		given(trace.OpSegmentFree, 0, 60, "pool by=rapids"),
		given(trace.OpAlloc, 6, 10, "physical by=pytorch"),
		given(trace.OpAlloc, 7, 3, "module by=pytorch"),
		given(trace.OpSegmentMap, 0, 10, "physical by=pytorch"),
		given(trace.OpSegmentMap, 0, 10, "physical by=pytorch"),
		given(trace.OpSegmentUnmap, 0, 10, "physical by=pytorch"),
		{TimeNS: 1, Op: trace.OpOOM, Level: trace.LevelDriver, Size: 99, Addr: 5, Tag: code("physical by=nccl")},
		given(trace.OpMark, 0, 0, "step"),
		given(trace.OpMark, 0, 0, "epoch"),
	})
	want := &Driver{
		Peak: 584, PeakRow: 5, PeakNS: 1, End: 500 + 20 + 4 + 10 + 3,
		Accounts: []*Account{
			{Kind: "context", Counted: true, Allocs: 1, AtPeak: 500, AtEnd: 500, Most: 500},
			{Kind: "pool", By: "rapids", Counted: true, Allocs: 1, AtPeak: 64, AtEnd: 4, Most: 64},
			{Kind: "memory", By: "pytorch", Counted: true, Allocs: 1, AtPeak: 20, AtEnd: 20, Most: 20},
			{Kind: "physical", By: "pytorch", Counted: true, Allocs: 1, AtEnd: 10, Most: 10},
			{Kind: "module", By: "pytorch", Counted: true, Allocs: 1, AtEnd: 3, Most: 3},
			{Kind: "pinned", By: "pytorch", Allocs: 1, AtPeak: 7000, Most: 7000},
			{Kind: "pool", By: "rapids", Allocs: 1, AtEnd: 50, Most: 50},
		},
		Mappings:    Mappings{Maps: 2, Unmaps: 1, AtEnd: 10, Most: 20},
		Refusals:    []Refusal{{OOM{14, 99, 5}, "physical", "nccl"}},
		Reservation: &Reservation{Framework: 25, Driver: 30},
	}
	if diff := cmp.Diff(want, o.Devices[0].Driver, cmpopts.IgnoreUnexported(Driver{}, Account{})); diff != "" {
		t.Error(diff)
	}
	d := o.Devices[0]
	if d.Allocs != 1 || d.PeakLive != 9 || d.PeakReserved != 25 || len(d.OOMs) != 0 {
		t.Errorf("of the framework %+v", d)
	}
	if diff := cmp.Diff([]Step{{15, 1}}, o.Steps); diff != "" {
		t.Error(diff)
	}
}

func TestReconciliation(t *testing.T) {
	sample := func(timeNS, size int64, whose string) trace.Event {
		return trace.Event{TimeNS: timeNS, Op: trace.OpSample, Size: size, Tag: code(whose), Level: trace.LevelDriver}
	}
	alloc := func(timeNS, id, size int64) trace.Event {
		return trace.Event{TimeNS: timeNS, Op: trace.OpAlloc, ID: id, Size: size, Tag: code("context"), Level: trace.LevelDriver}
	}
	for name, c := range map[string]struct {
		rows []trace.Event
		want *Reconciliation
	}{
		"no samples": {[]trace.Event{alloc(10, 1, 80)}, nil},
		"the last of equal ones": {
			[]trace.Event{alloc(10, 1, 80), sample(20, 100, "process"), alloc(20, 2, 15), sample(30, 100, "process"), sample(40, 90, "process")},
			&Reconciliation{Measured: "process", Samples: 3, Row: 3, TimeNS: 30, Used: 100, Traced: 95, Unexplained: 5, Share: 0.05},
		},
		"the card's is above": {
			[]trace.Event{alloc(10, 1, 80), sample(20, 150, "card"), sample(20, 100, "process"), sample(30, 160, "card"), sample(30, 90, "process")},
			&Reconciliation{Measured: "process", Samples: 2, Row: 2, TimeNS: 20, Used: 100, Traced: 80, Unexplained: 20, Share: 0.2, Card: 150, Others: 50},
		},
		"the card's is below": {
			[]trace.Event{alloc(10, 1, 80), sample(11, 120, "card"), sample(20, 100, "process"), sample(20, 150, "card"), sample(20, 170, "card")}, // one of each at a time
			&Reconciliation{Measured: "process", Samples: 1, Row: 2, TimeNS: 20, Used: 100, Traced: 80, Unexplained: 20, Share: 0.2, Card: 150, Others: 50},
		},
		"the card's has not changed": {
			[]trace.Event{alloc(10, 1, 80), sample(11, 120, "card"), sample(900, 100, "process"), sample(901, 150, "card")},
			&Reconciliation{Measured: "process", Samples: 1, Row: 2, TimeNS: 900, Used: 100, Traced: 80, Unexplained: 20, Share: 0.2, Card: 120, Others: 20},
		},
		"the card's only one is after": {
			[]trace.Event{sample(20, 100, "process"), sample(70, 150, "card")},
			&Reconciliation{Measured: "process", Samples: 1, TimeNS: 20, Used: 100, Unexplained: 100, Share: 1, Card: 150, Others: 50},
		},
		"the card's was taken before the process grew": {
			[]trace.Event{alloc(10, 1, 80), sample(20, 70, "card"), sample(20, 100, "process")},
			&Reconciliation{Measured: "process", Samples: 1, Row: 2, TimeNS: 20, Used: 100, Traced: 80, Unexplained: 20, Share: 0.2},
		},
		"the card alone": {
			[]trace.Event{alloc(10, 1, 80), sample(20, 100, "card"), sample(30, 60, "card")},
			&Reconciliation{Measured: "card", Samples: 2, Row: 1, TimeNS: 20, Used: 100, Traced: 80, Unexplained: 20, Share: 0.2},
		},
		"more is traced": {
			[]trace.Event{alloc(10, 1, 80), sample(20, 40, "process")},
			&Reconciliation{Measured: "process", Samples: 1, Row: 1, TimeNS: 20, Used: 40, Traced: 80, Unexplained: -40, Share: -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, read(t, c.rows).Devices[0].Driver.Reconciliation); diff != "" {
				t.Error(diff)
			}
		})
	}
}
