package policy

import (
	"slices"
	"sort"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planMemo is MEMO's token-wise recomputation and swapping (section 4.1) on the layers of a graph. Two layers at a time have their tensors
// on the device: those of layer i are copied to the host while layer i+1 runs and are freed before layer i+2, and copied back when the
// backward pass of layer i+2 has ended. Of the inputs and attention outputs all is copied, of other tensors the first rows; the rest is
// recomputed. The last two layers stay, as do tensors that cannot be recomputed.
func planMemo(p *problem) ([]swap.Action, error) {
	m := newMemo(p)
	return m.plan(m.fraction())
}

// planMemoWith does the same with a given part of the rows.
func planMemoWith(part float64) func(*problem) ([]swap.Action, error) {
	return func(p *problem) ([]swap.Action, error) { return newMemo(p).plan(part) }
}

func newMemo(p *problem) *memo {
	m := &memo{problem: p, layers: p.layers()}
	m.share = make([][]share, max(0, len(m.layers)-2))
	m.collect()
	return m
}

func (m *memo) plan(part float64) ([]swap.Action, error) {
	p := m.problem
	var trips []draft.Trip
	for i, shares := range m.share {
		for _, s := range shares {
			trips = append(trips, m.trip(i, s, part))
		}
	}
	trips = p.Advance(trips)
	slices.SortStableFunc(trips, func(a, b draft.Trip) int { return int(p.Made(&a) - p.Made(&b)) })
	return p.Compile(trips, p.Remake.Dead), nil
}

type memo struct {
	*problem
	layers []layer
	share  [][]share // of the layers that are swapped
}

// layer is where a layer runs: its first operator in each pass and the one behind its last.
type layer struct {
	number                int32
	forward, backward     int32
	forwardEnd, behindEnd int32
	took                  time.Duration // its forward pass
}

// share is a tensor of a layer.
type share struct {
	draft.Gap
	whole bool // all of it is copied
}

// layers returns those that run in both passes, in the order of the forward pass.
func (p *problem) layers() []layer {
	var all []layer
	index := map[int32]int{}
	for op := range p.Graph.Ops {
		o := &p.Graph.Ops[op]
		i, known := index[o.Layer]
		switch {
		case o.Layer < 0 || o.Phase == swap.Update:
		case o.Phase == swap.Forward && !known:
			index[o.Layer] = len(all)
			all = append(all, layer{number: o.Layer, forward: int32(op), forwardEnd: int32(op) + 1, backward: -1, took: o.Duration})
		case o.Phase == swap.Forward:
			all[i].forwardEnd = int32(op) + 1
			all[i].took += o.Duration
		case known:
			if all[i].backward < 0 {
				all[i].backward = int32(op)
			}
			all[i].behindEnd = int32(op) + 1
		}
	}
	return slices.DeleteFunc(all, func(l layer) bool { return l.backward < 0 })
}

// collect finds what is moved. Tensors are recomputed from kept ones, or from those of their own and of later layers, which are back by then.
func (m *memo) collect() {
	home := map[int32]int{}
	for i := range m.share {
		home[m.layers[i].number] = i
	}
	moved := map[int32]int{} // the layer that each tensor comes back with
	gaps := m.MainGaps()
	slices.SortFunc(gaps, func(a, b draft.Gap) int { return int(m.Remake.Rank[a.Tensor] - m.Remake.Rank[b.Tensor]) })
	var r draft.Recipe
	for _, x := range gaps {
		t := &m.Graph.Tensors[x.Tensor]
		i, known := home[t.Layer]
		whole := t.Role != swap.Inner
		if !known {
			continue
		}
		m.Remake.Begin(&r)
		able := m.Remake.Add(&r, x.Tensor, min(x.Before, m.layers[i].backward), m.Remake.Dead)
		earlier := slices.ContainsFunc(r.Needs, func(t int32) bool { layer, ok := moved[t]; return ok && layer < i })
		if whole || able && !earlier {
			moved[x.Tensor] = i
			m.share[i] = append(m.share[i], share{x, whole})
		}
	}
}

// rows returns how many bytes of a tensor are copied: whole rows.
func (m *memo) rows(s share, part float64) int64 {
	t := &m.Graph.Tensors[s.Tensor]
	switch {
	case s.whole || part == 1:
		return t.Bytes
	case t.Row == 0:
		return 0
	}
	return int64(part*float64(t.Bytes)) / t.Row * t.Row
}

// fraction returns the greatest part of the rows that keeps the copies of each layer within the time of its forward pass, and all of them
// within the host's memory: the closed form of section 4.1, except for the fixed time of each copy.
func (m *memo) fraction() float64 {
	if m.within(1) {
		return 1
	}
	const steps = 1 << 20
	return float64(max(0, sort.Search(steps, func(i int) bool { return !m.within(float64(i) / steps) })-1)) / steps
}

// within reports whether such a part of the rows is possible.
func (m *memo) within(part float64) bool {
	host := int64(0)
	for i, shares := range m.share {
		took := time.Duration(0)
		for _, s := range shares {
			if bytes := m.rows(s, part); bytes > 0 {
				took += m.Limits.Link.OutTime(bytes)
				host += bytes
			}
		}
		if took > m.layers[i].took {
			return false
		}
	}
	return host <= m.Limits.Host
}

func (m *memo) trip(i int, s share, part float64) draft.Trip {
	x := draft.Trip{Tensor: s.Tensor, Bytes: m.rows(s, part)}
	x.Out = max(m.layers[i+1].forward, m.Graph.Tensors[s.Tensor].Made+1)
	x.Free = max(m.layers[i+2].forward, s.After+1, x.Out)
	x.Need = min(s.Before, m.layers[i].backward)
	x.Back = x.Need
	if x.Bytes > 0 {
		x.Back = min(x.Need, max(x.Free+1, m.layers[i+2].behindEnd))
	}
	return x
}
