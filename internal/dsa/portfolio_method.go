package dsa

// method is one way to lay out an instance.
type method interface {
	// layout writes an offset for each buffer to out and returns the peak, both in units. It asks stop whenever the
	// peak grows and every stopEvery buffers, and gives up with ok false when told to.
	layout(in *instance, w *workspace, stop stopFunc, out []int64) (peak int64, ok bool)
}

// stopFunc says whether a layout that has reached a peak, in units, is not worth finishing.
type stopFunc func(peak int64) bool

// stopEvery is the number of buffers a method may place without asking.
const stopEvery = 1024

// workspace is the memory of one worker, reused from layout to layout.
type workspace struct {
	ranking ranking
	skyline skyline
	heap    addressOrder
	placed  []placement
	out     []int64
}

// work returns how many nodes of the index were looked at so far: what the time of a skyline goes with.
func (w *workspace) work() int64 { return w.skyline.left.visits }

// skylineBy is the skyline with buffers ranked by a key.
type skylineBy struct{ by key }

// layout implements method.
func (m skylineBy) layout(in *instance, w *workspace, stop stopFunc, out []int64) (peak int64, ok bool) {
	return w.skyline.run(in, w.ranking.byKey(in, m.by), stop, out)
}

// skylineAtRandom is the skyline with buffers ranked by a random mix of their properties, another in each round.
type skylineAtRandom struct{ seed, round uint64 }

// layout implements method.
func (m skylineAtRandom) layout(in *instance, w *workspace, stop stopFunc, out []int64) (peak int64, ok bool) {
	return w.skyline.run(in, w.ranking.byMix(in, m.seed, m.round), stop, out)
}
