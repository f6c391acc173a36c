package repeats

import "slices"

// cover holds the parts chosen so far.
type cover struct {
	text  *text
	taken []bool // by symbol: whether it belongs to a part
	parts []Part
}

// tandem takes the occurrences of a class that are free.
func (c *cover) tandem(cl *class) {
	var at []int
	end := 0
	for k, r := range cl.runs {
		begin := r.lo + (cl.roots[k]-r.lo+cl.shift)%cl.period
		for ; begin+cl.period <= r.hi; begin += cl.period {
			if begin >= end && c.free(begin, cl.period) && (len(at) == 0 || c.text.equal(at[0], begin, cl.period)) {
				at = append(at, begin)
				end = begin + cl.period
			}
		}
	}
	c.add(at, cl.period)
}

// free reports whether none of n symbols from i on are taken.
func (c *cover) free(i, n int) bool { return !slices.Contains(c.taken[i:i+n], true) }

// add takes the occurrences of a part, if there are several.
func (c *cover) add(at []int, length int) bool {
	if len(at) < 2 {
		return false
	}
	for _, i := range at {
		c.take(i, length)
	}
	c.parts = append(c.parts, Part{length, at})
	return true
}

func (c *cover) take(i, n int) {
	for k := range n {
		c.taken[i+k] = true
	}
}
