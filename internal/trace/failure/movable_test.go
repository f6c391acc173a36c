package failure_test

import (
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/failure"
	"gm/internal/trace/failure/failuretest"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/tags"
)

// movable returns what could have waited on the host in a trace with one failure, and the failure.
func movable(t *testing.T, file []byte) (*failure.Movable, *failure.Failure) {
	t.Helper()
	f := failuretest.Only(t, file)
	labels, err := tags.Derive(tracetest.Open(t, file, "x"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := failure.ReadMovable(tracetest.Open(t, file, "x"), []*failure.Failure{f}, labels)
	if err != nil {
		t.Fatal(err)
	}
	return found[f.Device], f
}

// TestMovable: activations and states leave, the rest stays, and an operator needs two activations.
func TestMovable(t *testing.T) {
	alloc := func(id, size int64, tag string) event {
		return event{trace.Event{Op: trace.OpAlloc, ID: id, Size: size}, tag}
	}
	rows := []event{
		alloc(1, 10*gib, tags.Parameters), alloc(2, 20*gib, tags.Optimizer), alloc(3, mib/2, tags.Optimizer),
		alloc(4, 9*gib, tags.Temporaries), {trace.Event{Op: trace.OpFree, ID: 4}, ""},
		alloc(5, 3*gib, tags.Activations), alloc(6, 2*gib, tags.Activations), alloc(7, 2*gib, tags.Activations), alloc(8, gib, "mine"),
		{trace.Event{Op: trace.OpOOM, Size: 4 * gib}, ""}, alloc(9, 50*gib, tags.Parameters),
	}
	m, f := movable(t, made(t, 0, rows))
	// With the request 15 GiB and a small state stay, and the operator has 5 GiB. The temporary was freed before there were activations.
	want := failure.Movable{Least: 20*gib + mib/2, Without: 42*gib + mib/2, Activations: 7 * gib, States: 20 * gib, Work: 5 * gib}
	if *m != want || !m.Known(f) || !m.Helps() {
		t.Errorf("%+v, want %+v", m, want)
	}
	rows[9].Size = 11 * gib
	if m, _ = movable(t, made(t, 0, rows)); m.Least != 27*gib+mib/2 || m.Without != 49*gib+mib/2 {
		t.Errorf("with a request of 11 GiB %+v", m)
	}

	// The largest activations were freed long ago: what lives is less, and all of it may be needed.
	rows = []event{
		alloc(1, 10*gib, tags.Parameters), alloc(2, 3*gib, tags.Activations), {trace.Event{Op: trace.OpFree, ID: 2}, ""},
		alloc(3, 10*mib, tags.Activations), {trace.Event{Op: trace.OpOOM, Size: 5 * gib}, ""},
	}
	if m, _ = movable(t, made(t, 0, rows)); m.Work != 10*mib || m.Least != 15*gib+10*mib || m.Without != m.Least || m.Helps() {
		t.Errorf("%+v", m)
	}

	// No more than what it took without gmswap.
	rows = []event{alloc(1, 10*gib, tags.Parameters), alloc(2, gib, tags.Activations), {trace.Event{Op: trace.OpOOM, Size: gib}, ""}}
	if m, _ = movable(t, made(t, 0, rows)); m.Least != 12*gib {
		t.Errorf("%+v", m)
	}

	// Where most is unknown, or nothing can move, there is no figure.
	rows = []event{alloc(1, 10*gib, tags.Unknown), alloc(2, gib, tags.Activations), {trace.Event{Op: trace.OpOOM, Size: gib}, ""}}
	if m, f = movable(t, made(t, 0, rows)); m.Known(f) || m.Unknown != 10*gib {
		t.Errorf("%+v", m)
	}
	rows = []event{alloc(1, 10*gib, tags.Parameters), {trace.Event{Op: trace.OpOOM, Size: gib}, ""}}
	if m, f = movable(t, made(t, 0, rows)); m.Known(f) {
		t.Errorf("%+v", m)
	}
}

// TestFollow: what lives after each row, and what of it must be there.
func TestFollow(t *testing.T) {
	alloc := func(id, size int64, tag string) event {
		return event{trace.Event{Op: trace.OpAlloc, ID: id, Size: size}, tag}
	}
	file := made(t, 0, []event{
		alloc(1, 10*gib, tags.Parameters), alloc(2, 20*gib, tags.Optimizer), alloc(3, 3*gib, tags.Activations), alloc(4, 2*gib, tags.Activations),
		alloc(5, 2*gib, tags.Activations), {trace.Event{Op: trace.OpFree, ID: 3}, ""}, {trace.Event{Op: trace.OpMark}, "step"},
	})
	labels, err := tags.Derive(tracetest.Open(t, file, "x"))
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	err = failure.Follow(tracetest.Open(t, file, "x"), labels, func(m failure.Moment) {
		if m.Step != (len(got) == 12) {
			t.Errorf("after %d numbers: step is %v", len(got), m.Step)
		}
		got = append(got, m.Live/gib, m.Least/gib)
	})
	if want := []int64{10, 10, 30, 10, 33, 13, 35, 15, 37, 15, 34, 15, 34, 15}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
