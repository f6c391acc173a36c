package replay

import (
	"errors"
	"fmt"
	"slices"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// Verdict is how far a replay of PyTorch's allocator agrees with the recording of one device.
type Verdict struct {
	Device       int32       `json:"device"`
	Allocs       int64       `json:"blocks"`              // blocks whose address was compared
	Segments     int64       `json:"segment_rows"`        // segment rows that were compared, preexisting ones left out
	PeakRecorded int64       `json:"peak_recorded_bytes"` // bytes reserved, by the recording
	PeakReplayed int64       `json:"peak_replayed_bytes"`
	Divergence   *Divergence `json:"divergence"` // nil if there is none
}

// verifier replays one device of a recording.
type verifier struct {
	conf     allocconf.Conf
	dev      *recordedDevice
	torch    *blocks.Torch
	ptrs     map[int64]cuda.Ptr
	held     map[int64][]cuda.Event
	initial  initial
	pending  []int64 // preexisting tensors that were freed before the recording and are still in use
	started  bool
	row      int64 // of the trace, the last of this device
	segments bool  // there are rows of segments
	reserved int64
	borrower cuda.Stream
	verdict  Verdict
}

// Verify replays PyTorch's allocator, with the settings of the recording, on the recorded segment addresses. It compares every segment row
// and the address of every block, and stops a device at its first divergence. limit is how many bytes of each device the process was
// allowed to reserve, 0 if that is not known; garbage collection depends on it.
func Verify(r *trace.Reader, limit int64) ([]Verdict, error) {
	conf, _ := allocconf.Recorded(r.Meta().AllocConf)
	var order []*verifier
	byDevice := map[int32]*verifier{}
	err := trace.Each(r, func(row int64, e *trace.Event) (err error) {
		if !concerns(e) {
			return nil
		}
		v := byDevice[e.Device]
		if v == nil {
			if v, err = newVerifier(conf, limit, e.Device); err != nil {
				return err
			}
			byDevice[e.Device] = v
			order = append(order, v)
		}
		if v.verdict.Divergence != nil {
			v.account(e)
			return nil
		}
		v.row = row
		if block, older := trace.ParsePreexisting(r.Strings().Text(e.Tag)); older {
			v.older(e, block)
		} else if err := v.add(e); err != nil {
			return fmt.Errorf("verify %s: row %d: %w", r.Name(), row, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var verdicts []Verdict
	for _, v := range order {
		if !v.segments {
			continue
		}
		if err := v.finish(); err != nil {
			return nil, fmt.Errorf("verify %s: %w", r.Name(), err)
		}
		verdicts = append(verdicts, v.verdict)
	}
	if len(verdicts) == 0 {
		return nil, fmt.Errorf("verify %s: no rows of segments to compare with", r.Name())
	}
	return verdicts, nil
}

func newVerifier(conf allocconf.Conf, limit int64, device int32) (*verifier, error) {
	dev := &recordedDevice{Device: sim.New(limit, sim.CostTable{})}
	conf.MemoryFraction = 1 // the limit already includes it
	torch, err := blocks.NewTorch(dev, conf)
	if err != nil {
		return nil, err
	}
	return &verifier{
		conf: conf, dev: dev, torch: torch, ptrs: map[int64]cuda.Ptr{}, held: map[int64][]cuda.Event{},
		borrower: borrower, verdict: Verdict{Device: device},
	}, nil
}

// older adds a row that describes memory from before the recording.
func (v *verifier) older(e *trace.Event, block int64) {
	v.account(e)
	if e.Op == trace.OpFreeRequested {
		v.pending = append(v.pending, e.ID)
	}
	if e.Addr != 0 && e.Size != 0 {
		v.initial.add(e, block, e.ID)
	}
}

// add replays one row.
func (v *verifier) add(e *trace.Event) error {
	v.account(e)
	if !v.started {
		v.started = true
		if err := v.restore(); err != nil {
			return err
		}
	}
	switch e.Op {
	case trace.OpSegmentAlloc, trace.OpSegmentFree, trace.OpSegmentMap, trace.OpSegmentUnmap:
		v.dev.push(e, v.row)
		v.verdict.Segments++
		return nil
	}
	return v.divergeOn(v.request(e))
}

// divergeOn turns the error of a call that was not recorded into the verdict.
func (v *verifier) divergeOn(err error) error {
	if !errors.Is(err, errDiverged) {
		return err
	}
	v.verdict.Divergence = v.dev.diverged
	if v.verdict.Divergence.Row < 0 {
		v.verdict.Divergence.Row = v.row
	}
	return nil
}

// account follows the bytes reserved in the recording.
func (v *verifier) account(e *trace.Event) {
	v.segments = v.segments || e.Op.Segment()
	switch e.Op {
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		v.reserved += e.Size
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		v.reserved -= e.Size
	}
	v.verdict.PeakRecorded = max(v.verdict.PeakRecorded, v.reserved)
}

// restore gives the allocator the memory that was there before the recording.
func (v *verifier) restore() error {
	segments, ids := v.initial.settle()
	for _, s := range segments {
		op := trace.OpSegmentAlloc
		if s.Expandable {
			op = trace.OpSegmentMap
		}
		v.dev.script = append(v.dev.script, segmentRow{op: op, addr: cuda.Ptr(s.Addr), size: s.Size})
	}
	ptrs, err := v.torch.Restore(segments)
	if err != nil {
		return err
	}
	for i, id := range ids {
		v.ptrs[id] = ptrs[i]
	}
	for _, id := range v.pending {
		if err := v.requestFree(id); err != nil {
			return err
		}
	}
	return nil
}

// request replays a row of a tensor. It first empties the cache if the recording did.
func (v *verifier) request(e *trace.Event) error {
	if v.dev.frees() > 0 {
		emptied, err := v.emptied(e)
		if err == nil && emptied {
			err = v.torch.Empty()
		}
		if err != nil {
			return err
		}
	}
	switch e.Op {
	case trace.OpAlloc:
		return v.alloc(e)
	case trace.OpFree:
		return v.torch.Free(v.take(e.ID))
	case trace.OpFreeRequested:
		return v.requestFree(e.ID)
	case trace.OpFreeCompleted:
		v.dev.Complete(v.held[e.ID])
		delete(v.held, e.ID)
	}
	return nil
}

// emptied reports whether the segments that were released before row e are an emptied cache: all that are idle, in the order of Empty.
// Otherwise the next request released them to make room.
func (v *verifier) emptied(e *trace.Event) (bool, error) {
	switch {
	case !v.conf.ReleasesEarly():
		return true, nil
	case e.Op == trace.OpAlloc:
		idle, ok, err := v.torch.Idle()
		return ok && slices.Equal(idle, v.dev.returned()), err
	}
	return e.Op != trace.OpFreeCompleted, nil
}

func (v *verifier) take(id int64) cuda.Ptr {
	p := v.ptrs[id]
	delete(v.ptrs, id)
	return p
}

func (v *verifier) alloc(e *trace.Event) error {
	p, err := v.torch.Malloc(e.Size, cuda.Stream(e.Stream), blocks.Pool(e.Pool))
	if errors.Is(err, cuda.ErrOutOfMemory) {
		v.verdict.Divergence = &Divergence{Row: v.row, Want: fmt.Sprintf("alloc of %d bytes", e.Size), Got: "out of memory"}
		return nil
	} else if err != nil {
		return err
	}
	v.ptrs[e.ID] = p
	v.verdict.Allocs++
	if uint64(p) != e.Addr {
		v.verdict.Divergence = &Divergence{Row: v.row,
			Want: fmt.Sprintf("alloc of %d bytes at %#x", e.Size, e.Addr), Got: fmt.Sprintf("it at %#x", uint64(p)),
		}
	} else if len(v.dev.script) > 0 {
		next := v.dev.script[0]
		v.verdict.Divergence = &Divergence{Row: next.row, Want: next.String(), Got: fmt.Sprintf("an alloc of %d bytes without it", e.Size)}
	}
	return nil
}

// requestFree frees a block that stays pending until its free completes. The event costs nothing if that is at once.
func (v *verifier) requestFree(id int64) error {
	p := v.take(id)
	v.borrower--
	var err error
	v.held[id] = v.dev.Hold(func() {
		if err = v.torch.RecordStream(p, v.borrower); err == nil {
			err = v.torch.Free(p)
		}
	})
	return err
}

// finish replays the remaining rows and completes the verdict.
func (v *verifier) finish() error {
	if err := v.divergeOn(v.replayRest()); err != nil {
		return err
	}
	v.verdict.PeakReplayed = v.torch.Stats().PeakReserved
	if v.verdict.Divergence == nil && v.verdict.PeakReplayed != v.verdict.PeakRecorded {
		v.verdict.Divergence = &Divergence{
			Row:  v.row,
			Want: fmt.Sprintf("a peak of %d bytes reserved", v.verdict.PeakRecorded), Got: fmt.Sprintf("one of %d", v.verdict.PeakReplayed),
		}
	}
	return nil
}

// replayRest replays the rows that no request follows.
func (v *verifier) replayRest() error {
	if v.verdict.Divergence != nil {
		return nil
	}
	if !v.started {
		if err := v.restore(); err != nil {
			return err
		}
	}
	if v.dev.frees() > 0 {
		if err := v.torch.Empty(); err != nil {
			return err
		}
	}
	if len(v.dev.script) > 0 {
		next := v.dev.script[0]
		v.verdict.Divergence = &Divergence{Row: next.row, Want: next.String(), Got: "nothing"}
	}
	return nil
}
