package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Options configure a run.
type Options struct {
	Capacity int64 // bytes that the allocator may take, 0 for all of the device
	Costs    sim.CostTable
	Check    Check
	Seed     uint64 // of the written words, and of the choice of tensors to read back
	Done     func() // called after each step if it is not nil
}

// Result is the outcome of a run.
type Result struct {
	Stats     blocks.Stats
	PeakInUse int64 // bytes, as the driver counts them, beyond those in use before
	Left      int64 // bytes still taken after all tensors were freed and the cache was emptied
	Malloc    Latencies
	Free      Latencies
	Account   Account
	OOM       *replay.OOM // where the run ended early, nil if it did not; row -1 is the creation of the allocator
	Checked   Checked
}

// runner runs one program.
type runner struct {
	p        *replay.Program
	gpu      GPU
	m        *meter
	a        blocks.Allocator
	s        *streams
	contents *contents // nil if nothing is written
	ptrs     []cuda.Ptr
	reserved int64 // when the driver was last queried
	baseline int64 // bytes that are free while nothing is taken
	res      *Result
	done     func() // nil if steps are not counted
}

// Run runs p through the allocator that newAllocator creates, on a device that passes calls on to gpu. It ends at the first request that
// cannot be met, and with an error when ctx is done. It releases all memory. For meaningful figures the GPU must have nothing else to do.
//
// Memory that the traced allocator held before the recording is requested like any other.
func Run(
	ctx context.Context, p *replay.Program, gpu GPU, o Options, newAllocator func(cuda.Device) (blocks.Allocator, error),
) (res *Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("replay %s: %w", p.Name, err)
		}
	}()
	s, err := newStreams(p, gpu)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	m, err := newMeter(gpu, &o.Costs, o.Capacity)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, gpu.Synchronize(), m.releaseAll()) }()
	r := &runner{p: p, gpu: gpu, m: m, s: s, ptrs: make([]cuda.Ptr, len(p.Sizes)), res: newResult(p)}
	if o.Check != CheckNothing {
		r.contents = newContents(gpu, p, o.Check, o.Seed)
	}
	if r.baseline, _, err = gpu.MemInfo(); err != nil {
		return nil, fmt.Errorf("query free memory: %w", err)
	}
	defer quiet()()
	if err := r.run(ctx, newAllocator, o.Done); err != nil {
		return nil, err
	}
	return r.res, nil
}

func newResult(p *replay.Program) *Result {
	return &Result{Malloc: make(Latencies, 0, len(p.Sizes)), Free: make(Latencies, 0, len(p.Sizes))}
}

// heapLimit is the memory of this process, in bytes, up to which no garbage is collected.
const heapLimit = 4 << 30

// quiet keeps the garbage collector and thread switches out of the measurements until the function that it returns is called.
func quiet() (end func()) {
	runtime.LockOSThread()
	runtime.GC()
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(heapLimit)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
		runtime.UnlockOSThread()
	}
}

func (r *runner) run(ctx context.Context, newAllocator func(cuda.Device) (blocks.Allocator, error), done func()) error {
	a, err := newAllocator(r.m)
	if r.res.OOM = replay.NewOOM(err); r.res.OOM != nil { // the arenas of a plan do not fit
		return nil
	} else if err != nil {
		return err
	}
	r.a, r.done = a, done
	if r.res.OOM, err = r.p.Perform(ctx, r.p.Steps(), r); err != nil {
		return err
	}
	r.res.Stats, r.res.Account = a.Stats(), r.m.account
	return r.end()
}

// end frees what is left and empties the cache.
func (r *runner) end() error {
	r.m.letAll()
	for t, p := range r.ptrs {
		if p == 0 {
			continue
		}
		if err := errors.Join(r.verify(int32(t)), r.a.Free(p)); err != nil {
			return fmt.Errorf("free what is left: %w", err)
		}
	}
	if err := r.a.Empty(); err != nil {
		return fmt.Errorf("release memory: %w", err)
	}
	r.res.Left = r.m.taken()
	if r.contents != nil {
		r.res.Checked = r.contents.Checked
	}
	return nil
}

// sample queries the driver for the memory in use, if more is taken than before.
func (r *runner) sample() error {
	was := r.reserved
	if r.reserved = r.a.Stats().Reserved; r.reserved <= was {
		return nil
	}
	free, _, err := r.gpu.MemInfo()
	if err != nil {
		return fmt.Errorf("query free memory: %w", err)
	}
	r.res.PeakInUse = max(r.res.PeakInUse, r.baseline-free)
	return nil
}

// Begin implements replay.Hands: requests are made as fast as they are answered.
func (r *runner) Begin(int) {}

// End implements replay.Hands.
func (r *runner) End(int) error {
	if err := r.sample(); err != nil {
		return err
	}
	if r.done != nil {
		r.done()
	}
	return nil
}

// Empty implements replay.Hands.
func (r *runner) Empty() error { return r.a.Empty() }

// Complete implements replay.Hands.
func (r *runner) Complete(t int32) error {
	r.m.let(t)
	return nil
}

// Free implements replay.Hands.
func (r *runner) Free(t int32) error { return errors.Join(r.verify(t), r.free(t)) }

// owner returns the stream that a tensor belongs to.
func (r *runner) owner(t int32) cuda.Stream { return r.s.owners[r.p.Streams[t]] }

// Alloc implements replay.Hands.
func (r *runner) Alloc(t int32) error {
	w := r.start()
	p, err := r.a.Malloc(r.p.Sizes[t], r.owner(t), r.p.Pools[t])
	took := w.stop(r.m)
	if err != nil {
		return err
	}
	r.res.Malloc = append(r.res.Malloc, took)
	r.ptrs[t] = p
	if r.contents == nil || p == 0 {
		return nil
	}
	return r.contents.write(t, p, r.owner(t))
}

// verify checks the contents of a tensor that is about to be freed.
func (r *runner) verify(t int32) error {
	if r.contents == nil || r.ptrs[t] == 0 {
		return nil
	}
	return r.contents.verify(t, r.ptrs[t], r.owner(t))
}

func (r *runner) free(t int32) error {
	w := r.start()
	err := r.a.Free(r.ptrs[t])
	took := w.stop(r.m)
	r.res.Free = append(r.res.Free, took)
	r.ptrs[t] = 0
	return err
}

// Request implements replay.Hands. The other stream writes the tensor once more, or does other work. That write must not reach a later
// tensor.
func (r *runner) Request(t int32) error {
	p := r.ptrs[t]
	if p == 0 {
		return nil
	}
	if err := r.verify(t); err != nil {
		return err
	}
	borrower := r.s.borrowers[r.s.lent[t]]
	if err := r.s.follow(borrower, r.owner(t)); err != nil {
		return err
	}
	work := func() error { return r.s.work(borrower) }
	if r.contents != nil {
		work = func() error { return r.contents.write(t, p, borrower) }
	}
	if err := errors.Join(work(), r.a.RecordStream(p, borrower)); err != nil {
		return err
	}
	return r.m.hold(t, func() error { return r.free(t) })
}

// watch measures a request.
type watch struct {
	begin        time.Time
	host, driver time.Duration
}

func (r *runner) start() watch {
	return watch{host: r.m.host, driver: r.m.driver, begin: time.Now()}
}

// stop returns the time that a request took, including its driver calls.
func (w watch) stop(m *meter) time.Duration {
	took := time.Since(w.begin) - m.empty
	return max(0, took-(m.host-w.host)+(m.driver-w.driver))
}
