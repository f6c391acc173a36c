package main

import "time"

// pace watches how much of the time goes into stitching, and lets the allocator take more memory instead while that is too much, as in
// a job that never repeats its requests.
type pace struct {
	begin    time.Time // of the window
	spent    int64     // nanoseconds in the driver then, for requests that were stitched
	driverNS int64     // the account's, and its stitches, at the last look
	stitches int64
	slack    float64 // share of the memory in use
}

const (
	paceWindow   = 2 * time.Second
	paceMost     = 0.01   // share of the time
	paceLittle   = 0.0025 // share of the time
	paceStep     = 0.01   // share of the memory in use
	paceSlackMax = 0.1
)

// relaxed is an allocator whose slack, the memory that it may waste, can be set.
type relaxed interface {
	Slack() float64
	SetSlack(slack float64)
}

// watch is called after driver calls.
func (p *pace) watch(a relaxed, driverNS, stitches int64, now time.Time) {
	if stitches > p.stitches {
		p.spent += driverNS - p.driverNS
	}
	p.driverNS, p.stitches = driverNS, stitches
	if p.begin.IsZero() {
		p.begin, p.slack = now, a.Slack()
	}
	elapsed := now.Sub(p.begin)
	if elapsed < paceWindow {
		return
	}
	switch share := float64(p.spent) / float64(elapsed); {
	case share > paceMost:
		a.SetSlack(min(a.Slack()+paceStep, paceSlackMax))
	case share < paceLittle:
		a.SetSlack(max(a.Slack()-paceStep, p.slack))
	}
	p.begin, p.spent = now, 0
}
