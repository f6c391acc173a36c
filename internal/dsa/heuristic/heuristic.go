// Package heuristic gives the heuristics of packages skyline and gapfit one interface, and a workspace that is reused from layout to
// layout.
package heuristic

import (
	"gm/internal/dsa/gapfit"
	"gm/internal/dsa/sections"
	"gm/internal/dsa/skyline"
)

// Method is a heuristic: one way to lay out an instance.
type Method interface {
	// Layout writes an offset for each buffer to out and returns the peak, both in units. It calls stop whenever the
	// peak grows and every sections.StopEvery buffers, and ends early, with ok false, when stop returns true.
	Layout(in *sections.Instance, w *Workspace, stop sections.Stop, out []int64) (peak int64, ok bool)
}

// Workspace is the memory of one worker, reused from layout to layout.
type Workspace struct {
	Ranking sections.Ranking
	skyline skyline.Skyline
	online  gapfit.Online
	ordered gapfit.Ordered
}

// Work returns how many nodes of its index the skyline has visited so far. Its time is proportional to that.
func (w *Workspace) Work() int64 { return w.skyline.Work() }

// ManyBuffers is the number of buffers above which best fit, which is fast on any problem, is tried before the skylines.
const ManyBuffers = 100_000

// SkylineBy is the skyline with buffers ranked by a key.
type SkylineBy sections.Key

// Layout implements [Method].
func (m SkylineBy) Layout(in *sections.Instance, w *Workspace, stop sections.Stop, out []int64) (peak int64, ok bool) {
	return w.skyline.Run(in, w.Ranking.ByKey(in, sections.Key(m)), stop, out)
}

// SkylineAtRandom is the skyline with buffers ranked by a random mix of their properties, another in each round.
type SkylineAtRandom struct{ Seed, Round uint64 }

// Layout implements [Method].
func (m SkylineAtRandom) Layout(in *sections.Instance, w *Workspace, stop sections.Stop, out []int64) (peak int64, ok bool) {
	return w.skyline.Run(in, w.Ranking.ByMix(in, m.Seed, m.Round), stop, out)
}

// BestFit places buffers in the smallest gap, in the order of their births: see [gapfit.Online].
type BestFit struct{}

// Layout implements [Method].
func (BestFit) Layout(in *sections.Instance, w *Workspace, stop sections.Stop, out []int64) (peak int64, ok bool) {
	return w.online.Run(in, stop, out)
}

// OrderedFit places buffers in the lowest gap, or the smallest, in the order of a key: see [gapfit.Ordered]. XLA and TensorFlow Lite use
// the smallest gap in the order of size.
type OrderedFit struct {
	By       sections.Key
	Smallest bool
}

// Layout implements [Method].
func (m OrderedFit) Layout(in *sections.Instance, w *Workspace, stop sections.Stop, out []int64) (peak int64, ok bool) {
	w.Ranking.ByKey(in, m.By)
	return w.ordered.Run(in, w.Ranking.Order, m.Smallest, stop, out)
}
