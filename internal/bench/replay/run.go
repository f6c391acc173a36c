package replay

import (
	"context"
	"fmt"
	"time"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Result is the outcome of a replay.
type Result struct {
	Stats      blocks.Stats
	Calls      int64         // driver calls on memory; a call on a range counts once for each handle in it
	DriverTime time.Duration // the time that all driver calls would take
	OOM        *OOM          // where the replay ended early, nil if it did not
	Curve      Curve
}

// borrower is the first of the streams that stand for all other streams in which a tensor was used: the recording says when they were done,
// not which they were. The further ones count down from it.
const borrower cuda.Stream = -1

// runner replays one program.
type runner struct {
	p     *Program
	a     blocks.Allocator
	dev   *sim.Device
	ptrs  []cuda.Ptr
	held  map[int32][]cuda.Event // of requested frees that are not complete
	lent  []int32                // by tensor, its borrower
	curve *sampler
	watch Watch
}

// newRunner returns what replays p through a. It lays out the memory that was there before the recording.
func newRunner(p *Program, a blocks.Allocator, dev *sim.Device) (*runner, error) {
	r := &runner{p: p, a: a, dev: dev, ptrs: make([]cuda.Ptr, len(p.Sizes)), held: map[int32][]cuda.Event{}}
	r.lent, _ = p.Borrowers()
	dev.Follow(p.addresses(a))
	if err := r.restore(); err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.Name, err)
	}
	return r, nil
}

// Watch is called after each step of a program, with its number from 0 and the address of its tensor, 0 if it has none.
type Watch func(step int, at cuda.Ptr)

// Run replays p through a, which allocates from dev. It ends at the first request that a cannot meet, and with an error when ctx is done.
func Run(ctx context.Context, p *Program, a blocks.Allocator, dev *sim.Device) (*Result, error) {
	return RunWatched(ctx, p, a, dev, func(int, cuda.Ptr) {})
}

// RunWatched is [Run] with a watch.
func RunWatched(ctx context.Context, p *Program, a blocks.Allocator, dev *sim.Device, watch Watch) (*Result, error) {
	r, err := newRunner(p, a, dev)
	if err != nil {
		return nil, err
	}
	r.curve, r.watch = newSampler(p), watch
	oom, err := p.Perform(ctx, p.Steps(), r)
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.Name, err)
	}
	return &Result{Stats: a.Stats(), Calls: dev.MemoryCalls(), DriverTime: dev.Elapsed(), OOM: oom, Curve: r.curve.curve}, nil
}

// addresses returns the recorded addresses of the segments, in the order in which a will request segments.
func (p *Program) addresses(a blocks.Allocator) []sim.Range {
	var all []sim.Range
	if _, ok := a.(restorer); ok {
		for _, s := range p.Initial {
			if !s.Expandable {
				all = append(all, sim.Range{Addr: cuda.Ptr(s.Addr), Size: s.Size})
			}
		}
	}
	return append(all, p.Segments...)
}

// restorer is an allocator that can begin with memory that is already laid out.
type restorer interface {
	Restore(segments []blocks.Segment) ([]cuda.Ptr, error)
}

// restore lays out the memory that was there before the recording. An allocator that cannot take it over gets requests for it instead.
func (r *runner) restore() error {
	a, ok := r.a.(restorer)
	if !ok || len(r.p.Initial) == 0 {
		return nil
	}
	ptrs, err := a.Restore(r.p.Initial)
	if err != nil {
		return err
	}
	for i, t := range r.p.InitialTensors {
		r.ptrs[t] = ptrs[i]
	}
	return nil
}

// Begin implements Hands: the job has reached a step.
func (r *runner) Begin(step int) { r.dev.Job(time.Duration(r.p.TimesNS[step] - r.p.TimesNS[0])) }

// Alloc implements Hands. A tensor that was restored is already there.
func (r *runner) Alloc(t int32) error {
	if r.ptrs[t] != 0 {
		return nil
	}
	ptr, err := r.a.Malloc(r.p.Sizes[t], r.p.Streams[t], r.p.Pools[t])
	r.ptrs[t] = ptr
	return err
}

// Free implements Hands.
func (r *runner) Free(t int32) error { return r.a.Free(r.ptrs[t]) }

// Complete implements Hands.
func (r *runner) Complete(t int32) error {
	r.dev.Complete(r.held[t])
	delete(r.held, t)
	return nil
}

// Empty implements Hands.
func (r *runner) Empty() error { return r.a.Empty() }

// End implements Hands.
func (r *runner) End(step int) error {
	r.curve.sample(step, r.a)
	if r.p.Kinds[step] == Empty {
		r.watch(step, 0)
	} else {
		r.watch(step, r.ptrs[r.p.Tensors[step]])
	}
	return nil
}

// Request implements Hands: the tensor is held until its Complete.
func (r *runner) Request(t int32) error {
	var err error
	r.held[t] = r.dev.Hold(func() {
		if err = r.a.RecordStream(r.ptrs[t], borrower-cuda.Stream(r.lent[t])); err == nil {
			err = r.a.Free(r.ptrs[t])
		}
	})
	return err
}
