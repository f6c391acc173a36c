package layout

// cycle is a window that is repeated without end. Its times are positions (see Tensors.position).
type cycle struct {
	t      *Tensors
	w      Window
	lo     int64
	period int64
	heirs  map[int]int // for a tensor from before the window, the one that takes its place for the next repetition
}

// newCycle returns the cycle of a periodic plan, or nil.
func newCycle(t *Tensors, o *Options) *cycle {
	if !o.Periodic {
		return nil
	}
	c := &cycle{t: t, w: *o.Window, lo: t.position(o.Window.Lo)}
	c.period = t.position(c.w.Hi) - c.lo
	c.findHeirs(o)
	return c
}

// end returns the end of the life of tensor i. After the window, the rows of the repetition may differ from those of the trace, and a plan
// knows only rows: so the later of both ends counts.
func (c *cycle) end(i int) int64 {
	end := c.t.position(c.t.Free[i])
	if after := c.t.Free[i] - c.w.Hi; after > 0 {
		end = max(end, c.t.position(c.w.Lo+after)+c.period)
	}
	return end
}

// repeats reports whether tensor i is allocated in the window and freed within a period.
func (c *cycle) repeats(i int) bool {
	return c.w.starts(c.t, i) && c.t.Free[i] < c.t.Rows && c.end(i)-c.t.position(c.t.Alloc[i]) <= c.period
}

// crosses reports whether tensor i still lives when the next repetition begins.
func (c *cycle) crosses(i int) bool { return c.end(i) > c.lo+c.period }

// request identifies tensors that may take the same place.
type request struct {
	arena arenaKey
	size  int64
}

// findHeirs assigns to each tensor that is allocated before the window and freed in it a tensor that lives on into the next repetition: of
// the same size, and freed there no earlier.
func (c *cycle) findHeirs(o *Options) {
	t := c.t
	left := map[request][]int{}
	for i := range t.ID {
		if c.repeats(i) && c.crosses(i) {
			r := request{o.key(t, i), t.Size[i]}
			left[r] = append(left[r], i)
		}
	}
	c.heirs = map[int]int{}
	for i := range t.ID {
		if t.Alloc[i] >= c.w.Lo || t.Free[i] <= c.w.Lo || t.Free[i] >= c.w.Hi {
			continue
		}
		r := request{o.key(t, i), t.Size[i]}
		for k, heir := range left[r] {
			if t.position(t.Free[i]) <= c.end(heir)-c.period {
				c.heirs[i] = heir
				left[r] = append(left[r][:k:k], left[r][k+1:]...)
				break
			}
		}
	}
}
