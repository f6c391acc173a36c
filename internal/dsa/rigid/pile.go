package rigid

// pile is the height to which each section is filled. An item on top of that overlaps nothing. It leaves gaps that a pass would use,
// but takes little time.
type pile struct {
	leaves int32
	most   []int64 // units, of a binary tree: the greatest height of a section below each node
	whole  []int64 // units: the height to which all sections below a node were filled at once
}

func newPile(sections int) *pile {
	return &pile{int32(sections), make([]int64, 2*sections), make([]int64, 2*sections)}
}

// Finish places the items of the order from a position on, each on top of all others.
func (c *Pass) Finish(m *Model, from int) {
	p := newPile(m.Sections())
	for i := range m.Items {
		if at := c.Position[i]; int(at) < from {
			p.put(m.Of(int32(i)), c.Base[i])
		}
	}
	for _, i := range c.Order[from:] {
		base := m.Items[i].Remainder
		for _, r := range m.Of(i) {
			base = max(base, p.height(r.Lo, r.Hi)-r.Low)
		}
		c.Base[i] = m.Items[i].AtLeast(base)
		c.Peak = max(c.Peak, c.Base[i]+m.Items[i].Top)
		p.put(m.Of(i), c.Base[i])
	}
}

// put fills the sections of the rectangles of an item up to their tops.
func (p *pile) put(rects []Rect, base int64) {
	for _, r := range rects {
		p.fill(r.Lo, r.Hi, base+r.Low+r.Size)
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
