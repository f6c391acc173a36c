package draft

import (
	"time"

	"gm/internal/swap"
)

// Clock is the time of the compute stream and of the lane to the host while a schedule is made for the forward pass.
type Clock struct {
	Link swap.Copier
	Now  time.Duration
	lane time.Duration // end of the copies
}

// Copy begins a copy to the host and returns its end.
func (c *Clock) Copy(bytes int64) time.Duration {
	c.lane = max(c.lane, c.Now) + c.Link.OutTime(bytes)
	return c.lane
}
