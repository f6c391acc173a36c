package overview

import (
	"reflect"
	"slices"
	"testing"

	"gm/formats/trace"
)

// steps returns the rows of a job of ten steps, with ids from a first one on, on streams with such handles.
func steps(id, stream, other int64) []trace.Event {
	var rows []trace.Event
	now := int64(0)
	add := func(e trace.Event) {
		now += 7
		e.TimeNS = now
		rows = append(rows, e)
	}
	for range 10 {
		first := id
		for i := range int64(40) {
			add(trace.Event{Op: trace.OpAlloc, ID: id, Size: 512 * (1 + i*i%41), Stream: stream})
			stream, other = other, stream
			id++
		}
		for ; first < id; first++ {
			add(trace.Event{Op: trace.OpFree, ID: first})
		}
	}
	return rows
}

// change returns the rows with one changed.
func change(rows []trace.Event, row int, change func(*trace.Event)) []trace.Event {
	rows = slices.Clone(rows)
	change(&rows[row])
	return rows
}

func TestSharedDigests(t *testing.T) {
	base := steps(1, 0, 7)
	for name, c := range map[string]struct {
		rows  []trace.Event
		alike bool
	}{
		"the same":               {base, true},
		"other ids":              {steps(3, 0, 7), true},
		"other streams":          {steps(1, 99, 3), true},
		"one stream":             {steps(1, 5, 5), false},
		"another size":           {change(base, 2, func(e *trace.Event) { e.Size++ }), false},
		"another stream":         {change(base, 2, func(e *trace.Event) { e.Stream = 8 }), false},
		"freed in another order": {change(change(base, 40, func(e *trace.Event) { e.ID = 2 }), 41, func(e *trace.Event) { e.ID = 1 }), false},
		"one free fewer":         {base[:len(base)-1], false},
		"other times":            {change(base, len(base)-1, func(e *trace.Event) { e.TimeNS++ }), true},
		"rows of a driver":       {append(slices.Clone(base), trace.Event{TimeNS: 1 << 40, Op: trace.OpAlloc, Level: trace.LevelDriver, ID: 401, Size: 9}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.alike != (read(t, c.rows).Devices[0].Requests == read(t, base).Devices[0].Requests) {
				t.Errorf("alike should be %t", c.alike)
			}
		})
	}
}

// TestShared reads traces with the same Shared and without, in several orders.
func TestShared(t *testing.T) {
	var shared Shared
	for _, rows := range [][]trace.Event{steps(1, 0, 7), steps(9, 4, 2), steps(1, 1, 1), steps(1, 0, 7)[:600], steps(1, 0, 7)} {
		alone := read(t, rows)
		o, err := shared.Read(open(t, write(t, rows)))
		if err != nil {
			t.Fatal(err)
		}
		if len(alone.Devices[0].Iterations) < 5 || alone.Devices[0].IterationNS == 0 {
			t.Fatalf("%d iterations of %d ns", len(alone.Devices[0].Iterations), alone.Devices[0].IterationNS)
		}
		if got, want := o.Devices[0], alone.Devices[0]; !reflect.DeepEqual(got.Iterations, want.Iterations) || got.IterationNS != want.IterationNS {
			t.Errorf("iterations %v of %d ns, alone %v of %d", got.Iterations, got.IterationNS, want.Iterations, want.IterationNS)
		}
	}
}
