package replay

import (
	"errors"
	"fmt"
	"time"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Result is what a replay came to.
type Result struct {
	Stats      blocks.Stats
	Calls      int64         // driver calls on memory, one for each handle in a range
	DriverTime time.Duration // that all driver calls would have taken
	OOM        *OOM          // where the replay ended early, nil if it did not
	Curve      Curve
}

// OOM is a request that could not be met.
type OOM struct {
	Row       int64 // of the trace
	TimeNS    int64
	Size      int64 // bytes requested
	Allocated int64 // bytes handed out at that time
	Reserved  int64 // bytes taken from the device at that time
}

// borrower is the first of the streams that stand for all others in which a tensor was used: the recording says when they
// were done, not which they were. The rest are below it.
const borrower cuda.Stream = -1

// runner replays one program.
type runner struct {
	p    *Program
	a    blocks.Allocator
	dev  *sim.Device
	ptrs []cuda.Ptr
	held map[int32][]cuda.Event // of requested frees that are not complete
	lent []int32                // by tensor, its borrower
}

// Watch is told of a step of a program that was just made, from 0, and of the address of its tensor, 0 if it has none.
type Watch func(step int, at cuda.Ptr)

// Run replays p through a, which allocates from dev. It ends at the first request that a cannot meet.
func Run(p *Program, a blocks.Allocator, dev *sim.Device) (*Result, error) {
	return RunWatched(p, a, dev, func(int, cuda.Ptr) {})
}

// RunWatched is [Run] with somebody who watches.
func RunWatched(p *Program, a blocks.Allocator, dev *sim.Device, watch Watch) (*Result, error) {
	r := runner{p: p, a: a, dev: dev, ptrs: make([]cuda.Ptr, len(p.Sizes)), held: map[int32][]cuda.Event{}}
	r.lent, _ = p.Borrowers()
	res := &Result{}
	dev.Follow(p.addresses(a))
	if err := r.restore(); err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.Name, err)
	}
	curve := newSampler(p)
	for i := range p.Kinds {
		dev.Job(time.Duration(p.TimesNS[i] - p.TimesNS[0]))
		if err := r.step(i); err != nil {
			if res.OOM = p.OOMAt(i, err); res.OOM != nil {
				break
			}
			return nil, fmt.Errorf("replay %s: row %d: %w", p.Name, p.Rows[i], err)
		}
		curve.sample(i, a)
		if p.Kinds[i] == Empty {
			watch(i, 0)
		} else {
			watch(i, r.ptrs[p.Tensors[i]])
		}
	}
	res.Stats, res.Calls, res.DriverTime, res.Curve = a.Stats(), dev.MemoryCalls(), dev.Elapsed(), curve.curve
	return res, nil
}

// OOMAt returns the OOM that an error at a step is, nil for another error.
func (p *Program) OOMAt(step int, err error) *OOM {
	var oom *blocks.OOMError
	if !errors.As(err, &oom) {
		return nil
	}
	return &OOM{
		Row: int64(p.Rows[step]), TimeNS: p.TimesNS[step], Size: oom.Size, Allocated: oom.Allocated, Reserved: oom.Reserved,
	}
}

// addresses returns the recorded addresses of the segments in the order in which a will ask for segments.
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

// restorer is an allocator that can begin with memory already laid out.
type restorer interface {
	Restore(segments []blocks.Segment) ([]cuda.Ptr, error)
}

// restore lays out what was there before the recording. An allocator that cannot take it over gets requests for it instead.
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

func (r *runner) step(i int) error {
	t := r.p.Tensors[i]
	switch r.p.Kinds[i] {
	case Alloc:
		if r.ptrs[t] != 0 {
			return nil // restored
		}
		ptr, err := r.a.Malloc(r.p.Sizes[t], r.p.Streams[t], r.p.Pools[t])
		r.ptrs[t] = ptr
		return err
	case Free:
		return r.a.Free(r.ptrs[t])
	case Request:
		return r.request(t)
	case Complete:
		r.dev.Complete(r.held[t])
		delete(r.held, t)
		return nil
	default:
		return r.a.Empty()
	}
}

// request frees a tensor that another stream still uses until the tensor's Complete.
func (r *runner) request(t int32) error {
	var err error
	r.held[t] = r.dev.Hold(func() {
		if err = r.a.RecordStream(r.ptrs[t], borrower-cuda.Stream(r.lent[t])); err == nil {
			err = r.a.Free(r.ptrs[t])
		}
	})
	return err
}
