package check

import (
	"cmp"
	"slices"

	"gm/internal/bitset"
)

// life is a stretch of time in which a tensor lives.
type life struct {
	tensor     int
	start, end int64
}

// lives returns the lives of the tensors, in rows.
func (c *checked) lives() []life {
	all := make([]life, len(c.tensors))
	for i := range all {
		all[i] = life{i, c.tensors[i].Alloc, c.tensors[i].Free}
	}
	return all
}

// sweep looks for two tensors that live at the same time and share a byte, and records the loads of the arenas. It replays births and
// deaths and keeps the live tensors in the order of their offsets: a tensor that overlaps any overlaps a neighbour.
func (c *checked) sweep(lives []life, explain func(x, y life) error) error {
	slices.SortStableFunc(lives, func(a, b life) int { return cmp.Compare(a.start, b.start) })
	byOffset, rank := c.byOffset(lives)
	deaths := byDeath(lives)
	live := bitset.New(len(lives))
	for i, x := range lives {
		for ; lives[deaths[0]].end <= x.start; deaths = deaths[1:] {
			dead := &c.tensors[lives[deaths[0]].tensor]
			live.Remove(rank[deaths[0]])
			c.arenas[arenaOf(dead)].now -= c.rounded(dead)
		}
		t := &c.tensors[x.tensor]
		for _, neighbour := range [2]int{live.Before(rank[i]), live.After(rank[i])} {
			if neighbour < 0 {
				continue
			}
			if y := lives[byOffset[neighbour]]; c.overlap(t, &c.tensors[y.tensor]) {
				return explain(x, y)
			}
		}
		live.Add(rank[i])
		u := c.arenas[arenaOf(t)]
		u.now += c.rounded(t)
		u.load = max(u.load, u.now)
	}
	for _, i := range deaths {
		dead := &c.tensors[lives[i].tensor]
		c.arenas[arenaOf(dead)].now -= c.rounded(dead)
	}
	return nil
}

// byOffset returns the lives arena by arena in the order of their offsets, and the place of each in that order.
func (c *checked) byOffset(lives []life) (order, rank []int) {
	order, rank = make([]int, len(lives)), make([]int, len(lives))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &c.tensors[lives[i].tensor], &c.tensors[lives[j].tensor]
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Arena, b.Arena), cmp.Compare(a.Offset, b.Offset), cmp.Compare(i, j))
	})
	for place, i := range order {
		rank[i] = place
	}
	return order, rank
}

// byDeath returns the lives in the order in which they end.
func byDeath(lives []life) []int {
	order := make([]int, len(lives))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(lives[i].end, lives[j].end) })
	return order
}
