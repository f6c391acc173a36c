package recording

import "testing"

func TestClock(t *testing.T) {
	const day = int64(aDay)
	for _, c := range []struct {
		name              string
		times             []int64
		forward, backward string
	}{
		{"nothing", nil, "", ""},
		{"starts late", []int64{9 * day, 9*day + 5}, "", ""},
		{"a day", []int64{0, day}, "", ""},
		{"one jump", []int64{0, 5, 5 + 10*day, 6 + 10*day}, "row 2: the clock jumps forward by 10.0 days", ""},
		{"two jumps", []int64{0, 2 * day, 5 * day}, "row 2: the clock jumps forward by 3.0 days, the furthest of 2 jumps of more than a day", ""},
		{"back", []int64{10, 7, 9, 10, 11}, "", "2 rows lie before the one above them, by up to 3ns: they are put at its time"},
		{"back by days", []int64{3 * day, 0, 1, 3 * day}, "", "2 rows lie before the one above them, by up to 3.0 days: they are put at its time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var clock Clock
			last := int64(0)
			for _, ns := range c.times {
				if at := clock.Add(ns); at < last || at != max(ns, last) {
					t.Errorf("time %d is put at %d, after %d", ns, at, last)
				} else {
					last = at
				}
			}
			if clock.Forward() != c.forward || clock.Backward() != c.backward {
				t.Errorf("%q, %q, want %q, %q", clock.Forward(), clock.Backward(), c.forward, c.backward)
			}
		})
	}
}
