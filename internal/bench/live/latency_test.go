package live

import (
	"slices"
	"testing"
	"time"
)

func TestSummary(t *testing.T) {
	var l Latencies
	for i := range 1000 {
		l = append(l, time.Duration(1000-i))
	}
	if got, want := l.Summary(), (Summary{P50: 500, P99: 990, P999: 999, Max: 1000}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := l[:1].Summary(), (Summary{1, 1, 1, 1}); got != want {
		t.Errorf("of one: %v, want %v", got, want)
	}
	if got := (Latencies{}).Summary(); got != (Summary{}) {
		t.Errorf("of none: %v", got)
	}
}

func TestHistogram(t *testing.T) {
	l := Latencies{20, 19, 10, 9, 60, 99, time.Hour}
	got := l[:6].Histogram()
	if want := []Bucket{{5, 1}, {10, 2}, {20, 1}, {50, 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := l[6:].Histogram(); !slices.Equal(got, []Bucket{{500 * time.Second, 1}}) {
		t.Errorf("of an hour: %v", got)
	}
	if got := (Latencies{0, 1}).Histogram(); !slices.Equal(got, []Bucket{{0, 1}, {1, 1}}) {
		t.Errorf("of nothing: %v", got)
	}
	if got := (Latencies{}).Histogram(); got != nil {
		t.Errorf("of none: %v", got)
	}
}
