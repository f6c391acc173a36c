package dsa

// pile is how high the sections are filled: what is put on top of that overlaps nothing. It leaves gaps that a pass would use,
// but takes next to no time.
type pile struct {
	leaves int32
	most   []int64 // units, of a binary tree: the greatest height below each node that was filled below it
	whole  []int64 // units: the height to which all below a node was filled at once
}

func newPile(sections int) *pile {
	return &pile{int32(sections), make([]int64, 2*sections), make([]int64, 2*sections)}
}

// finish places the items of the order from a position on, each on top of all others.
func (c *pass) finish(m *model, from int) {
	p := newPile(m.sections())
	for i := range m.items {
		if at := c.position[i]; int(at) < from {
			p.put(m.of(int32(i)), c.base[i])
		}
	}
	for _, i := range c.order[from:] {
		base := m.items[i].rest
		for _, r := range m.of(i) {
			base = max(base, p.height(r.lo, r.hi)-r.low)
		}
		c.base[i] = m.items[i].atLeast(base)
		c.peak = max(c.peak, c.base[i]+m.items[i].top)
		p.put(m.of(i), c.base[i])
	}
}

// put fills the sections of the rectangles of an item up to their tops.
func (p *pile) put(rects []rect, base int64) {
	for _, r := range rects {
		p.fill(r.lo, r.hi, base+r.low+r.size)
	}
}

// fill fills the sections [lo, hi) up to a height.
func (p *pile) fill(lo, hi int32, to int64) {
	for a, b := lo+p.leaves, hi+p.leaves; a < b; a, b = a/2, b/2 {
		if a&1 == 1 {
			p.lift(a, to)
			a++
		}
		if b&1 == 1 {
			b--
			p.lift(b, to)
		}
	}
	for _, edge := range [2]int32{lo, hi - 1} {
		for i := (edge + p.leaves) / 2; i > 0; i /= 2 {
			p.most[i] = max(p.most[i], p.most[2*i], p.most[2*i+1])
		}
	}
}

func (p *pile) lift(node int32, to int64) {
	p.most[node], p.whole[node] = max(p.most[node], to), max(p.whole[node], to)
}

// height returns the greatest height of the sections [lo, hi).
func (p *pile) height(lo, hi int32) int64 {
	height := int64(0)
	for a, b := lo+p.leaves, hi+p.leaves; a < b; a, b = a/2, b/2 {
		if a&1 == 1 {
			height = max(height, p.most[a])
			a++
		}
		if b&1 == 1 {
			b--
			height = max(height, p.most[b])
		}
	}
	for _, edge := range [2]int32{lo, hi - 1} {
		for i := (edge + p.leaves) / 2; i > 0; i /= 2 {
			height = max(height, p.whole[i])
		}
	}
	return height
}
