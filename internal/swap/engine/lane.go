package engine

import (
	"time"

	"gm/internal/cuda"
)

// lane is a stream that copies in one direction. Its copies are counted from 1, and run in that order.
type lane struct {
	stream cuda.Stream
	count  int64 // of copies that it got
	bytes  int64
	behind int64 // the last of the other lane's copies that what this lane gets from now on comes behind

	busy  time.Duration
	times []cuda.Interval // of copies that are not in busy yet, from next on
	next  int
}

// collectAtOnce is how many copies that have passed are looked at with each that is queued: more than one, so that they become fewer.
const collectAtOnce = 2

// note keeps the time of a copy until it has passed.
func (l *lane) note(took cuda.Interval) {
	if l.next > 0 && len(l.times) == cap(l.times) {
		l.times = l.times[:copy(l.times, l.times[l.next:])]
		l.next = 0
	}
	l.times = append(l.times, took)
}

// collect adds the times of copies that have passed to busy, those of the first n that have not been added.
func (l *lane) collect(dev Device, n int) {
	for ; n > 0 && l.next < len(l.times); n-- {
		took, passed, err := dev.Elapsed(l.times[l.next])
		if !passed && err == nil {
			return
		}
		l.busy += took // 0 where the driver cannot tell
		dev.IntervalDestroy(l.times[l.next])
		l.next++
	}
}

// waiting is how many times are yet to be collected.
func (l *lane) waiting() int { return len(l.times) - l.next }
