package exporter

import (
	"maps"
	"slices"
)

// counter is a quantity over time, of which at most one value a microsecond is written: the greatest that it had. What it had at
// the end of a microsecond, if less, is the value of the next.
type counter struct {
	name    string
	begun   bool
	us      int64 // the microsecond that is under way
	value   int64
	most    int64 // in it
	written int64
}

// count adds to a counter.
func (t *timeline) count(d *track, c *counter, timeNS, delta int64) {
	us := (timeNS - t.survey.start) / nsPerUS
	if c.begun && us > c.us {
		t.flush(d, c, us)
	}
	if !c.begun || us > c.us {
		c.us, c.most = us, c.value
	}
	first := !c.begun
	c.begun = true
	c.value += delta
	if c.most = max(c.most, c.value); first {
		c.written = c.most - 1 // whatever the first value is, it is written
	}
}

// flush writes what a counter had in the microsecond under way and, if there is time before the next one, what it had at the end.
func (t *timeline) flush(d *track, c *counter, next int64) {
	t.point(d, c, c.us, c.most)
	if next > c.us+1 {
		t.point(d, c, c.us+1, c.value)
	}
}

func (t *timeline) point(d *track, c *counter, us, value int64) {
	if value == c.written {
		return
	}
	c.written = value
	t.event(`"ph":"C","pid":%d,"tid":0,"ts":%d,"name":%s,"args":{"bytes":%d}`, d.process, us, quote(c.name), value)
}

// finish writes the last values, and ends the bars of what is never freed.
func (t *timeline) finish(d *track) {
	for _, c := range []*counter{&d.allocated, &d.reserved, &d.driver, &d.card, &d.used} {
		if c.begun {
			t.flush(d, c, c.us+2)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.bars)) {
		t.endBar(d, id, t.survey.end)
	}
}
