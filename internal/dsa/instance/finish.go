package instance

import (
	"fmt"
	"slices"

	"gm/internal/dsa"
)

// finish returns the instance, once all rows were added.
func (b *builder) finish() (*Instance, error) {
	in := b.instance
	align := b.options.Align
	if align == 0 {
		align = max(b.unit, 1)
	}
	for i := range in.Arenas {
		simplify(&in.Arenas[i].Problem, align)
	}
	if err := b.tie(align); err != nil {
		return nil, err
	}
	for i := range in.Arenas {
		a := &in.Arenas[i]
		if err := a.Problem.Validate(); err != nil {
			where := "buffers counted from 0"
			if a.Name != "" {
				where = fmt.Sprintf("arena %q, %s", clip(a.Name), where)
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if x, y, found := a.Problem.TiedOverlap(); found {
			return nil, fmt.Errorf("buffers %s and %s live at the same time, but next_to and same_as make them overlap",
				b.idOf(a.Rows[x]), b.idOf(a.Rows[y]))
		}
	}
	return in, nil
}

// idOf returns the id of a row, quoted.
func (b *builder) idOf(row int32) string {
	for id, at := range b.ids {
		if at == row {
			return fmt.Sprintf("%q", clip(id))
		}
	}
	return fmt.Sprint(row)
}

// simplify sets the alignment of a problem and drops columns that have no effect.
func simplify(p *dsa.Problem, align int64) {
	p.Align = align
	for i, own := range p.Aligns {
		if own > 0 && align%own == 0 {
			p.Aligns[i] = 0
		}
	}
	if !slices.ContainsFunc(p.Aligns, func(own int64) bool { return own > 1 }) {
		p.Aligns = nil
	}
	if !slices.ContainsFunc(p.Fixed, func(at int64) bool { return at != dsa.Free }) {
		p.Fixed = nil
	}
}

// place is a buffer of an arena.
type place struct{ arena, buffer int32 }

// tie converts the links to ties.
func (b *builder) tie(align int64) error {
	if len(b.links) == 0 {
		return nil
	}
	in := b.instance
	places := make([]place, in.rows)
	for i := range in.Arenas {
		for k, row := range in.Arenas[i].Rows {
			places[row] = place{int32(i), int32(k)}
		}
	}
	for _, l := range b.links {
		to, ok := b.ids[l.to]
		from := places[l.row]
		switch {
		case !ok:
			return fmt.Errorf("line %d: %s names %q, which is no buffer", l.line, l.kind, clip(l.to))
		case to == l.row:
			return fmt.Errorf("line %d: %s names the buffer itself", l.line, l.kind)
		case places[to].arena != from.arena:
			return fmt.Errorf("line %d: %s names %q, a buffer of another arena", l.line, l.kind, clip(l.to))
		}
		p := &in.Arenas[from.arena].Problem
		t := dsa.Tie{A: places[to].buffer, B: from.buffer}
		if l.kind == nextTo {
			t.Delta = (p.Size[t.A] + align - 1) / align * align
		}
		p.Ties = append(p.Ties, t)
	}
	return nil
}
