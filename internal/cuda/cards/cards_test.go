package cards

import (
	"slices"
	"strings"
	"testing"
)

// TestAll looks at what users rely on: the order, names of one kind, and capacities that memory as it is sold can have.
func TestAll(t *testing.T) {
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Card) int { return a.GB - b.GB }) {
		t.Error("the cards are not in the order of their memory")
	}
	names := map[string]bool{}
	for _, c := range all {
		sold := int64(c.GB) << 30
		if names[c.Name] || c.Capacity > 0 && (c.Capacity > sold || c.Capacity < sold*9/10 || c.Capacity%(1<<20) != 0) {
			t.Errorf("%s: %d bytes of %d GB, or named twice", c.Name, c.Capacity, c.GB)
		}
		names[c.Name] = true
		if c.Capacity == 0 && c.Device == nil {
			t.Errorf("%s: nothing is known", c.Name)
		}
	}
}

func TestLookupDevice(t *testing.T) {
	for _, want := range Devices() {
		if d, err := LookupDevice(want.Name); err != nil || d != want || strings.ToLower(d.Name) != d.Name {
			t.Errorf("%s: %+v, %v", want.Name, d, err)
		}
	}
	if _, err := LookupDevice("tpu"); err == nil || !strings.Contains(err.Error(), "expected one of titan-x, a800, h200") {
		t.Error(err)
	}
}

// TestCurves looks for costs and rates whose sizes do not grow.
func TestCurves(t *testing.T) {
	h := H200()
	for call, points := range h.Calls {
		if !slices.IsSortedFunc(points, func(a, b Point) int { return int(a.Bytes - b.Bytes) }) || points[0].Cost <= 0 {
			t.Errorf("%s: %v", call, points)
		}
	}
	if !slices.IsSortedFunc(h.Copies.Alone, func(a, b Copy) int { return int(a.Bytes - b.Bytes) }) {
		t.Error(h.Copies.Alone)
	}
}
