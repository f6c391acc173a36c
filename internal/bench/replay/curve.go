package replay

import "gm/internal/blocks"

// maxSamples is the most points of a curve: more than a chart has pixels.
const maxSamples = 2048

// Curve is memory over time: for each of up to 2048 stretches of the same number of steps, its start and the most bytes in it.
type Curve struct {
	TimeNS    []int64
	Allocated []int64
	Reserved  []int64
}

type sampler struct {
	p      *Program
	stride int
	curve  Curve
}

func newSampler(p *Program) *sampler {
	return &sampler{p: p, stride: max(1, (p.Steps()+maxSamples-1)/maxSamples)}
}

func (s *sampler) sample(step int, a blocks.Allocator) {
	stats := a.Stats()
	c := &s.curve
	if step%s.stride == 0 {
		c.TimeNS = append(c.TimeNS, s.p.TimesNS[step])
		c.Allocated = append(c.Allocated, stats.Allocated)
		c.Reserved = append(c.Reserved, stats.Reserved)
		return
	}
	last := len(c.TimeNS) - 1
	c.Allocated[last] = max(c.Allocated[last], stats.Allocated)
	c.Reserved[last] = max(c.Reserved[last], stats.Reserved)
}
