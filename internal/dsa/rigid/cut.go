package rigid

import (
	"cmp"
	"slices"

	"gm/internal/dsa"
	"gm/internal/dsa/residue"
)

// cut turns circular time into a line: it cuts where the fewest bytes live, and splits each life that spans the cut. It
// returns the plain problem of the pieces, and in of the buffer of each piece. Without a period the pieces are
// the buffers, and of is nil.
func cut(p *dsa.Problem) (pieces *dsa.Problem, of []int32) {
	if p.Period == 0 {
		return &dsa.Problem{Start: p.Start, End: p.End, Size: p.Size, Align: p.Align}, nil
	}
	at := calm(p)
	pieces = &dsa.Problem{Align: p.Align}
	add := func(i int, start, end int64) {
		pieces.Start, pieces.End = append(pieces.Start, start), append(pieces.End, end)
		pieces.Size = append(pieces.Size, p.Size[i])
		of = append(of, int32(i))
	}
	for i := range p.Size {
		start, life := residue.Mod(residue.Mod(p.Start[i], p.Period)-at, p.Period), p.End[i]-p.Start[i]
		add(i, start, min(start+life, p.Period))
		if rest := start + life - p.Period; rest > 0 {
			add(i, 0, rest)
		}
	}
	return pieces, of
}

// calm returns the earliest moment of a period at which the fewest bytes live, apart from buffers that always live.
func calm(p *dsa.Problem) int64 {
	type event struct{ at, change int64 }
	events := []event{{0, 0}}
	load := int64(0) // at the end of the period
	for i, size := range p.Size {
		life := p.End[i] - p.Start[i]
		if life == 0 || life == p.Period {
			continue
		}
		start := residue.Mod(p.Start[i], p.Period)
		end := start + life
		if end > p.Period {
			end -= p.Period
			load += size
		}
		events = append(events, event{start, size}, event{end, -size})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	best, least := int64(0), int64(-1)
	for i, e := range events {
		load += e.change
		if i+1 < len(events) && events[i+1].at == e.at || e.at == p.Period {
			continue
		}
		if least < 0 || load < least {
			best, least = e.at, load
		}
	}
	return best
}
