package replay

import (
	"context"
	"fmt"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Until replays p through a, which allocates from dev, up to and including a step. It returns the addresses of the tensors that the program
// then holds; tensors of 0 bytes have none.
func Until(ctx context.Context, p *Program, a blocks.Allocator, dev *sim.Device, step int) (map[int32]cuda.Ptr, error) {
	r, err := newRunner(p, a, dev)
	if err != nil {
		return nil, err
	}
	live := map[int32]cuda.Ptr{}
	for _, t := range p.InitialTensors {
		if r.ptrs[t] != 0 {
			live[t] = r.ptrs[t]
		}
	}
	r.curve = newSampler(p)
	r.watch = func(step int, _ cuda.Ptr) {
		switch t := p.Tensors[step]; p.Kinds[step] {
		case Alloc:
			if r.ptrs[t] != 0 {
				live[t] = r.ptrs[t]
			}
		case Free, Request:
			delete(live, t)
		}
	}
	oom, err := p.Perform(ctx, step+1, r)
	if err == nil && oom != nil {
		err = fmt.Errorf("row %d: out of memory", oom.Row)
	}
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.Name, err)
	}
	return live, nil
}

// Peak is the moment when an allocator has taken most from its device.
type Peak struct {
	Step     int   // -1 if the first request cannot be met, or there is none
	Grew     bool  // the request of this step grew the memory to the peak
	Reserved int64 // bytes
	OOM      *OOM  // where the replay ended early, nil if it did not
}

// FindPeak replays p through a, which allocates from dev, and returns the first step after which most memory is taken.
//
// If the peak was reached before the first step and is never exceeded, FindPeak returns the step at which most bytes are requested, of
// those at which as much is still taken.
func FindPeak(ctx context.Context, p *Program, a blocks.Allocator, dev *sim.Device) (Peak, error) {
	peak := Peak{Step: -1, Reserved: a.Stats().Reserved}
	var requested, most int64
	res, err := RunWatched(ctx, p, a, dev, func(i int, _ cuda.Ptr) {
		switch p.Kinds[i] {
		case Alloc:
			requested += p.Sizes[p.Tensors[i]]
		case Free, Request:
			requested -= p.Sizes[p.Tensors[i]]
		}
		switch now := a.Stats().Reserved; {
		case peak.Step < 0 || now > peak.Reserved:
			peak.Grew = now > peak.Reserved && (peak.Step >= 0 || len(p.Initial) == 0)
			peak.Step, peak.Reserved, most = i, now, requested
		case now == peak.Reserved && !peak.Grew && requested > most:
			peak.Step, most = i, requested
		}
	})
	if err != nil {
		return Peak{}, err
	}
	peak.OOM = res.OOM
	return peak, nil
}
