package exporter

import (
	"maps"
	"slices"
)

// counter is a quantity over time, written at most once per microsecond, with its maximum in it. If the value at the end of the
// microsecond is less, it is written for the next one.
type counter struct {
	name    string
	begun   bool
	us      int64 // the current microsecond
	value   int64
	most    int64 // the maximum in it
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
		c.written = c.most - 1 // makes sure that the first value is written
	}
}

// flush writes a counter's maximum in the current microsecond and, if there is time before the next one, its final value.
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

// finish writes the last values, and ends the bars of blocks that are never freed.
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
