package main

import (
	"testing"
	"time"
)

type slack float64

func (s *slack) Slack() float64     { return float64(*s) }
func (s *slack) SetSlack(x float64) { *s = slack(x) }

// paced is a job whose driver calls a pace watches.
type paced struct {
	pace
	slack            slack
	now              time.Time
	most             int64
	driver, stitches int64
}

// run lets the driver take some time in each of several intervals of 100 ms.
func (p *paced) run(intervals int, took time.Duration, stitched bool) {
	for range intervals {
		p.now = p.now.Add(100 * time.Millisecond)
		p.driver += took.Nanoseconds()
		if stitched {
			p.stitches++
		}
		p.watch(&p.slack, p.driver, p.stitches, p.most, p.now)
	}
}

func TestPace(t *testing.T) {
	p := paced{slack: 0.005, now: time.Unix(1, 0), most: 40 << 30}
	p.run(100, 50*time.Millisecond, false)
	if p.slack != 0.005 {
		t.Errorf("slack %v after calls that were no stitches", p.slack)
	}
	p.run(30, 2*time.Millisecond, true)
	if p.slack < 0.014 || p.slack > 0.016 {
		t.Errorf("slack %v after 2 %% of the time for 3 s", p.slack)
	}
	p.run(200, 2*time.Millisecond, true)
	if p.slack != 0.02 {
		t.Errorf("slack %v after 2 %% of the time for 20 s", p.slack)
	}
	p.run(400, 500*time.Microsecond, true)
	if p.slack != 0.02 {
		t.Errorf("slack %v after 0.5 %% of the time", p.slack)
	}
	p.run(400, 100*time.Microsecond, true)
	if p.slack != 0.005 {
		t.Errorf("slack %v after 0.1 %% of the time for 40 s", p.slack)
	}
}

func TestPaceOfGrowingJob(t *testing.T) {
	p := paced{now: time.Unix(1, 0), most: 10 << 30}
	for range 50 {
		p.most += 1 << 30
		p.run(20, 20*time.Millisecond, true)
	}
	if p.slack > 0 {
		t.Errorf("slack %v while the memory in use grew", p.slack)
	}
	p.run(60, 20*time.Millisecond, true)
	if p.slack == 0 {
		t.Error("no slack once the memory in use was the same")
	}
}

// TestPaceRecount has a program set the counts of its account to zero.
func TestPaceRecount(t *testing.T) {
	p := paced{now: time.Unix(1, 0), most: 40 << 30}
	p.run(25, 50*time.Millisecond, false)
	for range 50 {
		p.driver, p.stitches = 0, 0
		p.recount()
		p.run(1, 3*time.Millisecond, true)
	}
	if p.slack != 0.02 {
		t.Errorf("slack %v after 3 %% of the time for 5 s", p.slack)
	}
}
