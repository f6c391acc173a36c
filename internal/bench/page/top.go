package page

import (
	"cmp"
	"slices"

	"gm/internal/bench/replay"
	"gm/internal/units"
)

// Top shows who holds the memory when most of it is requested.
type Top struct {
	Row     int64 // of the trace
	TimeNS  int64 // since the beginning
	Live    int64 // bytes
	Blocks  int
	Stacked bool // the groups are by stack; otherwise by size, because the trace has no stacks
	Groups  []Group
}

// Group is the blocks of one stack or of one size.
type Group struct {
	Name   string // folded stack, outermost frame first, or a size
	Bytes  int64
	Blocks int
}

// mostGroups is the most groups that a page lists.
const mostGroups = 12

// readTop finds the step with the most bytes requested and reads the stacks of the blocks that live then.
func readTop(p *replay.Program) (Top, error) {
	step, live := fullest(p)
	if step < 0 {
		return Top{}, nil
	}
	top := Top{Row: int64(p.Rows[step]), TimeNS: p.TimesNS[step] - p.TimesNS[0], Blocks: len(live)}
	var rows []int64
	for _, row := range live {
		rows = append(rows, row)
	}
	stacks, err := p.Stacks(rows)
	if err != nil {
		return Top{}, err
	}
	for _, stack := range stacks {
		top.Stacked = top.Stacked || stack != ""
	}
	groups := map[string]*Group{}
	for tensor, row := range live {
		size := p.Sizes[tensor]
		name := units.Bytes(size).String()
		if top.Stacked {
			name = stacks[row]
		}
		g := groups[name]
		if g == nil {
			g = &Group{Name: name}
			groups[name] = g
		}
		g.Bytes += size
		g.Blocks++
		top.Live += size
	}
	for _, g := range groups {
		top.Groups = append(top.Groups, *g)
	}
	slices.SortFunc(top.Groups, func(a, b Group) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	top.Groups = top.Groups[:min(len(top.Groups), mostGroups)]
	return top, nil
}

// fullest returns the step with the most bytes requested, -1 if there is none, and for each tensor that lives after it the row that
// allocated it.
func fullest(p *replay.Program) (at int, live map[int32]int64) {
	var sum, most int64
	at = -1
	for step, kind := range p.Kinds {
		switch kind {
		case replay.Alloc:
			sum += p.Sizes[p.Tensors[step]]
		case replay.Free, replay.Complete:
			sum -= p.Sizes[p.Tensors[step]]
		}
		if sum > most {
			most, at = sum, step
		}
	}
	live = map[int32]int64{}
	for step, kind := range p.Kinds[:at+1] {
		switch kind {
		case replay.Alloc:
			live[p.Tensors[step]] = int64(p.Rows[step])
		case replay.Free, replay.Complete:
			delete(live, p.Tensors[step])
		}
	}
	return at, live
}
