package live

import (
	"cmp"
	"slices"
)

const (
	// maxGroups bounds the groups of a device's streams, stacks or tags. Further ones share one group.
	maxGroups = 16384
	// maxShown bounds the groups in a View.
	maxShown = 50
	// others is the group of all beyond maxGroups.
	others = 0
)

// usage is the memory of a group.
type usage struct {
	live, peak     int64
	blocks, allocs int64
}

func (u *usage) add(bytes int64) {
	u.blocks++
	u.allocs++
	u.change(bytes)
}

func (u *usage) remove(bytes int64) {
	u.blocks--
	u.change(-bytes)
}

func (u *usage) change(bytes int64) {
	u.live += bytes
	u.peak = max(u.peak, u.live)
}

// groups are usages by a key.
type groups struct {
	index map[int64]int32
	keys  []int64
	list  []usage
}

func newGroups() groups {
	return groups{index: map[int64]int32{}, keys: make([]int64, 1), list: make([]usage, 1)}
}

// of returns the index in list of the group of a key.
func (g *groups) of(key int64) int32 {
	if i, ok := g.index[key]; ok {
		return i
	}
	if len(g.list) > maxGroups {
		return others
	}
	i := int32(len(g.list))
	g.index[key] = i
	g.keys = append(g.keys, key)
	g.list = append(g.list, usage{})
	return i
}

// largest returns the groups with the most live memory. describe fills in what the key of a group says.
func (g *groups) largest(describe func(key int64, to *Group)) []Group {
	numbers := make([]int32, 0, len(g.list))
	for i, u := range g.list {
		if u.allocs > 0 || u.peak > 0 {
			numbers = append(numbers, int32(i))
		}
	}
	slices.SortFunc(numbers, func(a, b int32) int {
		x, y := g.list[a], g.list[b]
		return cmp.Or(cmp.Compare(y.live, x.live), cmp.Compare(y.peak, x.peak), cmp.Compare(a, b))
	})
	shown := make([]Group, 0, min(len(numbers), maxShown))
	for _, i := range numbers[:cap(shown)] {
		u := g.list[i]
		to := Group{Name: "others", Live: u.live, Peak: u.peak, Blocks: u.blocks, Allocs: u.allocs}
		if i != others {
			describe(g.keys[i], &to)
		}
		shown = append(shown, to)
	}
	return shown
}
