package sim

import "time"

// Clearing is the account of what a driver clears. Memory that is given back is cleared in the background, one piece after the other
// (pmaFreePages and mem_scrub.c of NVIDIA's open kernel modules). A call that takes it again before that is done waits; memory that
// nobody had yet is clear.
type Clearing struct {
	cost *Curve
	used int64         // bytes
	most int64         // that were in use at once: the rest was never given back
	done time.Duration // when all that was given back is clear
}

// NewClearing returns the account of a GPU with nothing in use, on which clearing takes what costs say.
func NewClearing(costs *CostTable) Clearing { return Clearing{cost: &costs[Clear]} }

// Take counts size bytes as in use from now on and returns how long the call waits. What was given back is taken first, as the driver
// was seen to do.
func (c *Clearing) Take(size int64, now time.Duration) (wait time.Duration) {
	again := min(size, c.most-c.used)
	c.used += size
	c.most = max(c.most, c.used)
	if again <= 0 {
		return 0
	}
	return min(c.cost.At(again), c.Left(now))
}

// Give counts size bytes as given back now.
func (c *Clearing) Give(size int64, now time.Duration) {
	c.used -= size
	c.done = max(c.done, now) + c.cost.At(size)
}

// Used returns the bytes in use.
func (c *Clearing) Used() int64 { return c.used }

// Left returns how long it takes from now on until all is clear.
func (c *Clearing) Left(now time.Duration) time.Duration { return max(0, c.done-now) }
