package sim

import "time"

// Clearing models the clearing of memory by the driver. Released memory is cleared in the background, one piece after the other
// (pmaFreePages and mem_scrub.c of NVIDIA's open kernel modules). A call that takes it again before that is done waits. Memory that was
// never in use is clear.
type Clearing struct {
	cost *Curve
	used int64         // bytes in use
	most int64         // peak of used: memory beyond it was never released
	done time.Duration // when all released memory is clear
}

// NewClearing returns the state of a GPU with no memory in use, whose clearing costs are given.
func NewClearing(costs *CostTable) Clearing { return Clearing{cost: &costs[Clear]} }

// Take counts size bytes as in use from now on and returns how long the call waits. Released memory is taken first, as the driver was
// observed to do.
func (c *Clearing) Take(size int64, now time.Duration) (wait time.Duration) {
	again := min(size, c.most-c.used)
	c.used += size
	c.most = max(c.most, c.used)
	if again <= 0 {
		return 0
	}
	return min(c.cost.At(again), c.Left(now))
}

// Give counts size bytes as released now.
func (c *Clearing) Give(size int64, now time.Duration) {
	c.used -= size
	c.done = max(c.done, now) + c.cost.At(size)
}

// Used returns the bytes in use.
func (c *Clearing) Used() int64 { return c.used }

// Left returns the time from now until all memory is clear.
func (c *Clearing) Left(now time.Duration) time.Duration { return max(0, c.done-now) }
