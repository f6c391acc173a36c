package main

import (
	"cmp"
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/network"
)

// arena is a pool of memory from which requests are served best fit, as Nvidia's CNMeM does (Dymem, section 2.3.2).
type arena struct {
	blocks []block // by offset
}

// block is a request that is served.
type block struct{ offset, bytes int64 }

// take serves a request from the smallest gap that holds it, or else from behind all blocks. It returns the offset.
func (a *arena) take(bytes int64) int64 {
	at, best, end := len(a.blocks), int64(-1), int64(0)
	offset := a.top()
	for i, b := range a.blocks {
		if gap := b.offset - end; gap >= bytes && (best < 0 || gap < best) {
			at, best, offset = i, gap, end
		}
		end = b.offset + b.bytes
	}
	a.blocks = slices.Insert(a.blocks, at, block{offset, bytes})
	return offset
}

func (a *arena) give(offset int64) {
	i, _ := slices.BinarySearchFunc(a.blocks, offset, func(b block, offset int64) int { return cmp.Compare(b.offset, offset) })
	a.blocks = slices.Delete(a.blocks, i, i+1)
}

// top returns the end of the last block.
func (a *arena) top() int64 {
	if len(a.blocks) == 0 {
		return 0
	}
	last := a.blocks[len(a.blocks)-1]
	return last.offset + last.bytes
}

// mobility is a group of tensors (Dymem, section 3.3.2). Each has an arena of its own.
type mobility int

const (
	movable   mobility = iota // read once: from the low end
	temporary                 // read more often, or waiting to be joined: from the high end
	reclaimed                 // of layers that are never offloaded: outside of the pool
	mobilities
)

// stay is memory from one operator on and until another.
type stay struct {
	bytes     int64
	from, end int32
	group     mobility
}

// stays lists those of a step under a schedule, in the order in which they are made: what comes back before what an operator makes.
func stays(m *network.Model, actions []swap.Action) []stay {
	g := m.Graph
	var all []stay
	since := make([]int32, len(g.Tensors)) // the operator before which each was taken, -1 while it is not there
	for t := range g.Tensors {
		since[t] = g.Tensors[t].Made
	}
	for _, a := range actions {
		switch {
		case a.Kind == swap.Free:
			all = append(all, stay{g.Tensors[a.Tensor].Bytes, since[a.Tensor], a.At, groupOf(g, a.Tensor, since[a.Tensor])})
			since[a.Tensor] = -1
		case (a.Kind == swap.Prefetch || a.Kind == swap.Recompute) && since[a.Tensor] < 0:
			since[a.Tensor] = a.At
		}
	}
	for t := range g.Tensors {
		if since[t] >= 0 {
			all = append(all, stay{g.Tensors[t].Bytes, since[t], g.Tensors[t].Last() + 1, groupOf(g, int32(t), since[t])})
		}
	}
	for _, l := range m.Temporaries {
		all = append(all, stay{l.Bytes, l.Made, l.Last + 1, gradientGroup(l)})
	}
	slices.SortStableFunc(all, func(a, b stay) int { return cmp.Compare(a.from, b.from) })
	return all
}

// groupOf is algorithm 3 as it is meant: in the backward pass what waited for a join is read at once.
func groupOf(g *swap.Graph, t, taken int32) mobility {
	tensor := &g.Tensors[t]
	switch g.Ops[tensor.Made].Type {
	case swap.Linear, swap.Softmax, swap.Dropout:
		return reclaimed
	}
	readers, waits := 0, false
	for _, op := range tensor.Uses {
		if g.Ops[op].Phase == swap.Forward {
			readers++
			waits = waits || g.Ops[op].Type == swap.Join && op > tensor.Made+1
		}
	}
	if readers > 1 || waits && g.Ops[taken].Phase == swap.Forward {
		return temporary
	}
	return movable
}

// gradientGroup puts those that several branches add to apart.
func gradientGroup(l network.Lifetime) mobility {
	if l.Last > l.Made+1 {
		return temporary
	}
	return movable
}

// poolSize returns the bytes that a pool needs for requests: as one arena, or with an arena for each group, the first two of which grow
// towards each other.
func poolSize(all []stay, grouped bool) int64 {
	var arenas [mobilities]arena
	type lease struct {
		end    int32
		group  mobility
		offset int64
	}
	var live []lease
	most, outside := int64(0), int64(0)
	for i, r := range all {
		if i == 0 || r.from > all[i-1].from {
			live = slices.DeleteFunc(live, func(l lease) bool {
				if l.end <= r.from {
					arenas[l.group].give(l.offset)
				}
				return l.end <= r.from
			})
		}
		group := r.group
		if !grouped {
			group = movable
		}
		live = append(live, lease{r.end, group, arenas[group].take(r.bytes)})
		most = max(most, arenas[movable].top()+arenas[temporary].top())
		outside = max(outside, arenas[reclaimed].top())
	}
	return most + outside
}
