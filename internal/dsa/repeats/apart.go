package repeats

import "math/bits"

// apart takes equal stretches of free symbols, the longest first. It looks for equal windows, whose length halves
// from step to step. What does not occur twice with the least length does not occur twice with a greater one.
func (c *cover) apart(least int) {
	g := grouping{text: c.text}
	begins, longest := c.windows(least)
	g.group(begins, least)
	var again []int32
	for i, begin := range begins {
		if g.next[i] >= 0 || !g.first[i] {
			again = append(again, begin)
		}
	}
	for length := 1 << bits.Len(uint(longest/least)) * least; length >= least && len(again) > 1; length /= 2 {
		open := c.open(again, length)
		g.group(open, length)
		for i := range open {
			if g.first[i] && g.next[i] >= 0 {
				c.stretch(g.apart(c, open, int32(i), length), length)
			}
		}
	}
}

// windows returns the beginnings of the free windows of a length, and the length of the longest free stretch.
func (c *cover) windows(length int) (begins []int32, longest int) {
	free := 0
	for i, taken := range c.taken {
		if free++; taken {
			free = 0
		}
		if longest = max(longest, free); free >= length {
			begins = append(begins, int32(i-length+1))
		}
	}
	return begins, longest
}

// open filters ascending beginnings: it returns those from which a window of the given length is free.
func (c *cover) open(begins []int32, length int) []int32 {
	var open []int32
	end := 0 // all symbols from the last beginning up to here are free
	for _, begin := range begins {
		i := int(begin)
		for end = max(end, i); end < min(i+length, len(c.taken)) && !c.taken[end]; end++ {
		}
		if end >= i+length {
			open = append(open, begin)
		}
	}
	return open
}

// stretch takes a part, and extends it on both sides while its occurrences agree.
func (c *cover) stretch(at []int, length int) {
	if !c.add(at, length) {
		return
	}
	p := &c.parts[len(c.parts)-1]
	for c.agree(p.At, p.Length) {
		p.Length++
	}
	for c.agree(p.At, -1) {
		for k := range p.At {
			p.At[k]--
		}
		p.Length++
	}
}

// agree reports whether the symbols at the given distance from each place are equal and free, and takes them if so.
func (c *cover) agree(at []int, distance int) bool {
	for _, i := range at {
		k := i + distance
		if k < 0 || k >= len(c.taken) || c.taken[k] || c.text.symbols[k] != c.text.symbols[at[0]+distance] {
			return false
		}
	}
	for _, i := range at {
		c.taken[i+distance] = true
	}
	return true
}

// grouping links windows of the same hash. It reuses its memory.
type grouping struct {
	text  *text
	slots []int32 // the last window of a hash, by the hash; -1 when empty
	mask  uint64
	hash  []uint64
	next  []int32 // the next window of the same hash, by window; -1 after the last
	first []bool  // whether no window before has the hash
}

// group links the windows of a length that begin at the given places.
func (g *grouping) group(begins []int32, length int) {
	g.mask = 1<<bits.Len(uint(2*len(begins))) - 1
	g.slots = resize(g.slots, int(g.mask)+1)
	for i := range g.slots {
		g.slots[i] = -1
	}
	g.hash, g.next, g.first = resize(g.hash, len(begins)), resize(g.next, len(begins)), resize(g.first, len(begins))
	for i, begin := range begins {
		h := g.text.hash(int(begin), length)
		slot := h * 0x9e37_79b9_7f4a_7c15 >> 20 & g.mask
		for g.slots[slot] >= 0 && g.hash[g.slots[slot]] != h {
			slot = (slot + 1) & g.mask
		}
		last := g.slots[slot]
		g.hash[i], g.next[i], g.first[i] = h, -1, last < 0
		if last >= 0 {
			g.next[last] = int32(i)
		}
		g.slots[slot] = int32(i)
	}
}

// apart returns the places of the windows of a group, from window i on, that are still free, equal and do not overlap. All windows
// were free before stretches of at least their length were taken, so it is enough to look at the first and the last symbol.
func (g *grouping) apart(c *cover, begins []int32, i int32, length int) []int {
	var at []int
	end := 0
	for ; i >= 0; i = g.next[i] {
		begin := int(begins[i])
		if begin < end || c.taken[begin] || c.taken[begin+length-1] || len(at) > 0 && !c.text.equal(at[0], begin, length) {
			continue
		}
		at = append(at, begin)
		end = begin + length
	}
	return at
}

// resize returns a slice of n elements, in the memory of s when that is enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
