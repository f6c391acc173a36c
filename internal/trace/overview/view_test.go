package overview

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/formats/trace"
)

// TestViews compares views of random traces with a count of what lives after each row.
func TestViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rows := randomRows(rng)
		file := write(t, rows)
		o, err := Read(open(t, file))
		if err != nil {
			t.Fatal(err)
		}
		whole := o.Whole(rng.IntN(2) == 0)
		span := whole.End - whole.Start + 1
		a, b := whole.Start+rng.Int64N(span), whole.Start+rng.Int64N(span)
		view := View{whole.Rows, min(a, b), max(a, b)}
		want, peak := columnsOf(rows, view)
		l := timelinesOf(t, file, o, map[int32]View{0: view})[0]
		got := make([]int64, Columns)
		for _, bytes := range l.Bytes {
			for column := range got {
				got[column] += bytes[column]
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v of %+v: live bytes differ", view, rows)
		}
		frames, err := ReadFrames(open(t, file), o, map[int32]View{0: view})
		if err != nil {
			t.Fatal(err)
		}
		if row := frames.PeakRows()[0]; liveAfter(rows, row) != peak {
			t.Fatalf("%+v of %+v: %d bytes live after row %d, want the peak of %d", view, rows, liveAfter(rows, row), row, peak)
		}
	}
}

// TestNoView: a device without a view is not drawn.
func TestNoView(t *testing.T) {
	file := write(t, []trace.Event{{Op: trace.OpAlloc, ID: 1, Size: 1}, {Op: trace.OpAlloc, ID: 2, Size: 1, Device: 1}})
	o, err := Read(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	if all := timelinesOf(t, file, o, map[int32]View{1: o.Whole(true)}); len(all) != 1 || all[0].Device != 1 {
		t.Errorf("%+v", all)
	}
}

// randomRows returns allocations and frees, in time, the first of which is an allocation.
func randomRows(rng *rand.Rand) []trace.Event {
	var rows []trace.Event
	var live []int64
	now := int64(0)
	for id := int64(1); id < 2+rng.Int64N(60); id++ {
		now += rng.Int64N(1 << rng.IntN(12))
		if len(live) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(live))
			rows = append(rows, trace.Event{TimeNS: now, Op: trace.OpFree, ID: live[i]})
			live = slices.Delete(live, i, i+1)
			continue
		}
		rows = append(rows, trace.Event{TimeNS: now, Op: trace.OpAlloc, ID: id, Size: 1 + rng.Int64N(1000)})
		live = append(live, id)
	}
	return rows
}

// liveAfter returns the bytes that live right after a row.
func liveAfter(rows []trace.Event, last int64) int64 {
	sizes := map[int64]int64{}
	for _, e := range rows[:last+1] {
		delete(sizes, e.ID)
		if e.Op == trace.OpAlloc {
			sizes[e.ID] = e.Size
		}
	}
	sum := int64(0)
	for _, size := range sizes {
		sum += size
	}
	return sum
}

// columnsOf returns the most bytes that live after a row of each column, or after the row before it, and the most of all.
func columnsOf(rows []trace.Event, view View) (columns []int64, peak int64) {
	columns = make([]int64, Columns)
	for column := range columns {
		before, found := int64(0), false
		for row, e := range rows {
			at := view.At(int64(row), e.TimeNS)
			live := liveAfter(rows, int64(row))
			switch place := (at - view.Start) * Columns; {
			case at < view.Start || place/(view.End-view.Start+1) < int64(column):
				before = live
			case at <= view.End && place/(view.End-view.Start+1) == int64(column):
				columns[column] = max(columns[column], live)
				found = true
			}
		}
		if !found {
			columns[column] = before
		}
		peak = max(peak, columns[column])
	}
	return columns, peak
}
