package repeats

// class is all runs of the same content. The root of a run is the beginning of the rotation that all of them share.
type class struct {
	period int
	runs   []run
	roots  []int
	shift  int // from a root to the beginning of an occurrence, less than the period
	gain   int // symbols
}

// classify groups runs by their content.
func classify(t *text, runs []run) []class {
	type content struct {
		period int
		hash   uint64
	}
	var classes []class
	known := map[content]int{}
	for _, r := range runs {
		root := t.rotation(r)
		key := content{r.period, t.hash(root, r.period)}
		at, ok := known[key]
		if !ok {
			at = len(classes)
			known[key] = at
			classes = append(classes, class{period: r.period})
		}
		c := &classes[at]
		c.runs, c.roots = append(c.runs, r), append(c.roots, root)
	}
	return classes
}

// cut chooses the shift that saves the most symbols.
func (c *class) cut(pairs []int32) {
	whole, torn, spare := c.tears(pairs)
	occurrences := c.least()
	for shift := range c.period {
		gain := (occurrences + spare[shift] - 1) * c.period
		if pairs != nil {
			gain = 2 * (whole - torn[shift]) / c.periods() * (occurrences + spare[shift] - 1)
		}
		if gain > c.gain {
			c.shift, c.gain = shift, gain
		}
	}
}

// periods returns how often the period fits into the runs.
func (c *class) periods() int {
	sum := 0
	for _, r := range c.runs {
		sum += (r.hi - r.lo) / c.period
	}
	return sum
}

// least returns how many occurrences there are at any shift.
func (c *class) least() int { return c.periods() - len(c.runs) }

// tears returns the number of pairs in the runs that are closer than a period. By shift, it also returns how many of those are torn, and
// how many occurrences there are beyond the least.
func (c *class) tears(pairs []int32) (whole int, torn, spare []int) {
	torn, spare = make([]int, c.period), make([]int, c.period)
	for k, r := range c.runs {
		phase := c.period - (c.roots[k] - r.lo) // of the first symbol, from a root
		c.between(spare, phase, phase+(r.hi-r.lo)%c.period+1)
		if pairs == nil {
			continue
		}
		for i := r.lo; i < r.hi; i++ {
			if j := int(pairs[i]); j > i && j < r.hi && j-i < c.period {
				whole++
				c.between(torn, phase+i-r.lo+1, phase+j-r.lo+1)
			}
		}
	}
	for shift := 1; shift < c.period; shift++ {
		torn[shift] += torn[shift-1]
		spare[shift] += spare[shift-1]
	}
	return whole, torn, spare
}

// between adds one to the shifts from lo up to hi, modulo the period; the slice holds differences. They are at most a period apart.
func (c *class) between(count []int, lo, hi int) {
	if hi-lo == c.period {
		count[0]++
		return
	}
	lo, hi = lo%c.period, hi%c.period
	count[lo]++
	count[hi]--
	if hi < lo {
		count[0]++
	}
}
