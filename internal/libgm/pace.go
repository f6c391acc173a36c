package main

import "time"

// pace watches how much of the time goes into stitching, and lets the allocator take more memory instead while that is too much, as in
// a job that never repeats its requests. How much more is little: most of that time is hidden behind the work of the GPU.
type pace struct {
	begin    time.Time // of the window
	spent    int64     // nanoseconds in the driver since then, for requests that were stitched
	most     int64     // bytes in use at the peak, at the begin of the window
	driverNS int64     // the account's, and its stitches, at the last look
	stitches int64
	slack    float64 // share of the memory in use, without what is given here
}

const (
	paceWindow   = 2 * time.Second
	paceMost     = 0.01   // share of the time
	paceLittle   = 0.0025 // share of the time
	paceStep     = 0.01   // share of the memory in use
	paceSlackMax = 0.02
	paceGrowth   = 0.01 // a window in which the most in use grows by this share of it is not judged: the job is still to show what it needs
)

// relaxed is an allocator whose slack, the memory that it may waste, can be set.
type relaxed interface {
	Slack() float64
	SetSlack(slack float64)
}

// watch is called after driver calls. most is the bytes that were in use at the peak.
func (p *pace) watch(a relaxed, driverNS, stitches, most int64, now time.Time) {
	if stitches > p.stitches {
		p.spent += driverNS - p.driverNS
	}
	p.driverNS, p.stitches = driverNS, stitches
	if p.begin.IsZero() {
		p.begin, p.most, p.slack = now, most, a.Slack()
	}
	elapsed := now.Sub(p.begin)
	if elapsed < paceWindow {
		return
	}
	share := float64(p.spent) / float64(elapsed)
	switch {
	case float64(most-p.most) > paceGrowth*float64(p.most):
	case share > paceMost:
		a.SetSlack(min(a.Slack()+paceStep, paceSlackMax))
	case share < paceLittle:
		a.SetSlack(max(a.Slack()-paceStep, p.slack))
	}
	p.begin, p.most, p.spent = now, most, 0
}

// recount notes that the account's counts begin at zero again.
func (p *pace) recount() { p.driverNS, p.stitches = 0, 0 }
