package page

import (
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/report"
)

// series is the memory of one allocator over time: for each bucket of the same number of steps the least and the most, in bytes.
type series struct {
	a         blocks.Allocator
	stride    int
	allocated curve
	reserved  curve
}

type curve struct{ least, most []int64 }

// newSection returns a section whose curves have up to limit numbers each: one a step or, if that is too many, two a bucket.
func newSection(p *replay.Program, specs, limit int) *Section {
	s := &Section{Name: report.Printable(p.Name), Requests: p.Steps(), Duration: p.DurationNS(), series: make([]*series, specs)}
	if s.stride = 1; p.Steps() > limit {
		s.stride = (2*p.Steps() + limit - 1) / limit
	}
	if len(p.TimesNS) > 0 {
		s.beginNS = p.TimesNS[0]
	}
	for _, r := range p.Refusals {
		s.failed = append(s.failed, r.TimeNS-s.beginNS)
	}
	for step := 0; step < p.Steps(); step += s.stride {
		s.times = append(s.times, p.TimesNS[step]-s.beginNS)
	}
	return s
}

// newSeries returns the series of an allocator whose replay is about to begin.
func (s *Section) newSeries(spec int, a blocks.Allocator) *series {
	s.series[spec] = &series{a: a, stride: s.stride}
	return s.series[spec]
}

// watch implements replay.Watch.
func (s *series) watch(step int, _ cuda.Ptr) {
	stats := s.a.Stats()
	begins := step%s.stride == 0
	s.allocated.add(stats.Allocated, begins)
	s.reserved.add(stats.Reserved, begins)
}

func (c *curve) add(bytes int64, begins bool) {
	if begins {
		c.least, c.most = append(c.least, bytes), append(c.most, bytes)
		return
	}
	last := len(c.least) - 1
	c.least[last], c.most[last] = min(c.least[last], bytes), max(c.most[last], bytes)
}
