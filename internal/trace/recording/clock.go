package recording

import (
	"fmt"
	"time"
)

// Clock detects jumps of the clock of a recording.
type Clock struct {
	last   int64 // ns
	rows   int64
	jumps  int64
	row    int64 // after the greatest jump forward
	by     int64 // ns
	behind int64 // rows before the time of the one above them
	back   int64 // ns: the most that one of them was before it
}

// aDay is the longest step of a clock that is not reported as a jump. A job that sleeps for longer is reported, too.
const aDay = 24 * time.Hour

// Add processes the next row and returns its time, in ns, or that of the row above if that is later.
func (c *Clock) Add(timeNS int64) int64 {
	switch gap := timeNS - c.last; {
	case c.rows == 0:
	case gap < 0:
		c.behind++
		c.back = max(c.back, -gap)
		timeNS = c.last
	case gap > int64(aDay):
		c.jumps++
		if gap > c.by {
			c.row, c.by = c.rows, gap
		}
	}
	c.last = timeNS
	c.rows++
	return timeNS
}

// Forward describes where the clock jumps forward; "" if it does not.
func (c *Clock) Forward() string {
	if c.jumps == 0 {
		return ""
	}
	text := fmt.Sprintf("row %d: the clock jumps forward by %s", c.row, inDays(c.by))
	if c.jumps > 1 {
		text += fmt.Sprintf(", the furthest of %d jumps of more than a day", c.jumps)
	}
	return text
}

// Backward describes how many rows were earlier than the row above them; "" if none were.
func (c *Clock) Backward() string {
	if c.behind == 0 {
		return ""
	}
	return fmt.Sprintf("%d rows lie before the one above them, by up to %s: they are put at its time", c.behind, inDays(c.back))
}

// inDays formats nanoseconds.
func inDays(ns int64) string {
	if ns > int64(aDay) {
		return fmt.Sprintf("%.1f days", float64(ns)/float64(aDay))
	}
	return time.Duration(ns).String()
}
