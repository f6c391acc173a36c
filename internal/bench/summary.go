package bench

import "math"

// Summary is the result of one allocator over all programs.
type Summary struct {
	Allocator   string  `json:"allocator"`
	Traces      int     `json:"traces"` // those that both it and torch ran to the end; the means are over these
	Utilisation float64 `json:"utilisation_geomean"`
	Reserved    float64 `json:"reserved_vs_torch"`   // geometric mean of peak reserved / that of torch
	Reduction   float64 `json:"mem_reduction_ratio"` // of the sums of peak reserved, against torch
	DriverShare float64 `json:"driver_share_geomean"`
	OOMs        int     `json:"ooms"`
}

// Summarize returns a summary for each allocator, in the order of their first rows.
func Summarize(rows []Row) []Summary {
	type sums struct {
		Summary
		util, reserved, share float64 // of logarithms
		base, own             float64
	}
	var order []*sums
	byName := map[string]*sums{}
	for i := range rows {
		r := &rows[i]
		s := byName[r.Allocator]
		if s == nil {
			s = &sums{Summary: Summary{Allocator: r.Allocator}}
			byName[r.Allocator] = s
			order = append(order, s)
		}
		if r.OOM != nil {
			s.OOMs++
		}
		if r.Reduction == nil {
			continue
		}
		s.Traces++
		s.util += math.Log(r.Utilisation)
		s.reserved += math.Log(float64(r.PeakReserved) / float64(r.baseline))
		s.share += math.Log(max(r.DriverShare, 1e-9))
		s.own += float64(r.PeakReserved)
		s.base += float64(r.baseline)
	}
	var out []Summary
	for _, s := range order {
		if n := float64(s.Traces); n > 0 {
			s.Utilisation, s.Reserved, s.DriverShare = math.Exp(s.util/n), math.Exp(s.reserved/n), math.Exp(s.share/n)
			s.Reduction = (s.base - s.own) / s.base
		}
		out = append(out, s.Summary)
	}
	return out
}
