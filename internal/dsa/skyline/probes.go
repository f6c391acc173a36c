package skyline

import (
	"slices"

	"gm/internal/dsa/sections"
)

// probes watch the most loaded section of each stretch of time while a layout grows upwards. The height that a section has reached plus
// the sizes still to be placed in it is a lower bound of the final peak. A layout that wastes space in a
// critical section is thus abandoned early.
type probes struct {
	from     []int32 // from[s] is the first probe at or after section s, for s in [0, sections]
	unplaced []int64 // units that have yet to be placed over each probe
	start    []int64 // the same when nothing is placed
	of       *sections.Instance
}

// maxProbes bounds the work for a buffer that lives through all of them.
const maxProbes = 256

// reset starts over with no buffer of in placed.
func (p *probes) reset(in *sections.Instance) {
	if p.of != in {
		p.choose(in)
	}
	p.unplaced = append(p.unplaced[:0], p.start...)
}

// choose picks the probes: the first section of the greatest load in each of up to maxProbes stretches.
func (p *probes) choose(in *sections.Instance) {
	n := in.Sections()
	stretch := (n + maxProbes - 1) / maxProbes
	p.of, p.start, p.from = in, p.start[:0], slices.Grow(p.from[:0], n+1)[:n+1]
	for begin := 0; begin < n; begin += stretch {
		end := min(begin+stretch, n)
		top := begin
		for s := begin; s < end; s++ {
			if in.Load[s] > in.Load[top] {
				top = s
			}
		}
		for s := begin; s < end; s++ {
			p.from[s] = int32(len(p.start))
			if s > top {
				p.from[s]++
			}
		}
		p.start = append(p.start, in.Load[top])
	}
	p.from[n] = int32(len(p.start))
}

// place records that size units were placed over the sections [lo, hi).
func (p *probes) place(lo, hi int32, size int64) {
	over := p.unplaced[p.from[lo]:p.from[hi]]
	for i := range over {
		over[i] -= size
	}
}

// most returns the greatest number of unplaced units of the probes in the sections [a, b).
func (p *probes) most(a, b int32) int64 {
	most := int64(0)
	for _, left := range p.unplaced[p.from[a]:p.from[b]] {
		most = max(most, left)
	}
	return most
}
