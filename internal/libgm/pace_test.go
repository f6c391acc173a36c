package main

import (
	"testing"
	"time"
)

type slack float64

func (s *slack) Slack() float64     { return float64(*s) }
func (s *slack) SetSlack(x float64) { *s = slack(x) }

func TestPace(t *testing.T) {
	var p pace
	s := slack(0.01)
	now := time.Unix(1, 0)
	var driver, stitches int64
	// The time that driver calls take in each interval of 100 ms.
	run := func(times int, took time.Duration, stitched bool) {
		for range times {
			now = now.Add(100 * time.Millisecond)
			driver += took.Nanoseconds()
			if stitched {
				stitches++
			}
			p.watch(&s, driver, stitches, now)
		}
	}
	run(100, 50*time.Millisecond, false)
	if s != 0.01 {
		t.Errorf("slack %v after calls that were no stitches", s)
	}
	run(200, 2*time.Millisecond, true)
	if s < 0.09 || s > 0.1 {
		t.Errorf("slack %v after 2 %% of the time for 20 s", s)
	}
	run(400, 500*time.Microsecond, true)
	if s < 0.09 {
		t.Errorf("slack %v after 0.5 %% of the time", s)
	}
	run(400, 100*time.Microsecond, true)
	if s > 0.0101 || s < 0.0099 {
		t.Errorf("slack %v after 0.1 %% of the time for 40 s", s)
	}
}
