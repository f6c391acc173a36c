package replay

import (
	"errors"
	"fmt"
	"io"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// Verdict is how far a replay of PyTorch's allocator agrees with what PyTorch recorded on one device.
type Verdict struct {
	Device       int32       `json:"device"`
	Allocs       int64       `json:"allocs"`        // blocks whose address was compared
	Segments     int64       `json:"segment_rows"`  // segment rows that were compared, preexisting ones left out
	PeakRecorded int64       `json:"peak_recorded"` // bytes reserved, by the recording
	PeakReplayed int64       `json:"peak_replayed"`
	Divergence   *Divergence `json:"divergence"` // nil if there is none
}

// verifier replays one device of a recording.
type verifier struct {
	conf     blocks.TorchConf
	dev      *recordedDevice
	torch    *blocks.Torch
	ptrs     map[int64]cuda.Ptr
	held     map[int64][]cuda.Event
	initial  initial
	started  bool
	reserved int64
	borrower cuda.Stream
	verdict  Verdict
}

// Verify replays PyTorch's allocator, with the settings that the trace was recorded with, on the recorded segment addresses. It
// compares every segment row and every block's address, and stops a device at its first divergence.
func Verify(r *trace.Reader) ([]Verdict, error) {
	conf, err := blocks.ParseTorchConf(r.Meta().AllocConf)
	if err != nil {
		return nil, fmt.Errorf("settings of trace %s: %w", r.Name(), err)
	}
	var order []*verifier
	byDevice := map[int32]*verifier{}
	for row := int64(0); ; {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		for i := range batch.Len() {
			e := batch.Row(i)
			v := byDevice[e.Device]
			if v == nil {
				if v, err = newVerifier(conf, r.Meta().Capacity, e.Device); err != nil {
					return nil, err
				}
				byDevice[e.Device] = v
				order = append(order, v)
			}
			if e.Level == trace.LevelFramework && v.verdict.Divergence == nil {
				if err := v.add(&e, row, r.Strings().Text(e.Tag) == trace.TagPreexisting); err != nil {
					return nil, fmt.Errorf("verify %s: row %d: %w", r.Name(), row, err)
				}
			}
			row++
		}
	}
	var verdicts []Verdict
	for _, v := range order {
		if err := v.finish(); err != nil {
			return nil, fmt.Errorf("verify %s: %w", r.Name(), err)
		}
		verdicts = append(verdicts, v.verdict)
	}
	return verdicts, nil
}

func newVerifier(conf blocks.TorchConf, capacity int64, device int32) (*verifier, error) {
	dev := &recordedDevice{Device: sim.New(0, sim.CostTable{})}
	if capacity == 0 {
		conf.MemoryFraction, conf.GCThreshold = 1, 0 // shares of an unknown whole
	}
	torch, err := blocks.NewTorch(dev, conf)
	if err != nil {
		return nil, err
	}
	return &verifier{
		conf: conf, dev: dev, torch: torch, ptrs: map[int64]cuda.Ptr{}, held: map[int64][]cuda.Event{},
		borrower: borrower, verdict: Verdict{Device: device},
	}, nil
}

// add replays one row.
func (v *verifier) add(e *trace.Event, row int64, preexisting bool) error {
	v.account(e)
	if preexisting && e.Op != trace.OpFreeRequested {
		v.initial.add(e, e.ID)
		return nil
	}
	if !v.started {
		v.started = true
		if err := v.restore(); err != nil {
			return err
		}
	}
	switch e.Op {
	case trace.OpSegmentAlloc, trace.OpSegmentFree, trace.OpSegmentMap, trace.OpSegmentUnmap:
		v.dev.push(e, row)
		v.verdict.Segments++
		return nil
	case trace.OpSnapshot, trace.OpMark:
		return nil
	}
	err := v.request(e, row)
	if errors.Is(err, errDiverged) {
		v.verdict.Divergence = v.dev.diverged
		if v.verdict.Divergence.Row < 0 {
			v.verdict.Divergence.Row = row
		}
		return nil
	}
	return err
}

// account follows the bytes reserved in the recording.
func (v *verifier) account(e *trace.Event) {
	switch e.Op {
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		v.reserved += e.Size
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		v.reserved -= e.Size
	}
	v.verdict.PeakRecorded = max(v.verdict.PeakRecorded, v.reserved)
}

// restore hands the memory that was there before the recording to the allocator.
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
	return nil
}

// request replays a row of a tensor, after the cache was emptied if the recording says so.
func (v *verifier) request(e *trace.Event, row int64) error {
	if n := v.dev.frees(); n > 0 && (v.conf.MaxSplitSize == 0 && v.conf.GCThreshold == 0 || e.Op != trace.OpAlloc) {
		if err := v.torch.Empty(); err != nil {
			return err
		}
	}
	switch e.Op {
	case trace.OpAlloc:
		return v.alloc(e, row)
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

func (v *verifier) take(id int64) cuda.Ptr {
	p := v.ptrs[id]
	delete(v.ptrs, id)
	return p
}

func (v *verifier) alloc(e *trace.Event, row int64) error {
	p, err := v.torch.Malloc(e.Size, cuda.Stream(e.Stream), blocks.Pool(e.Pool))
	if errors.Is(err, cuda.ErrOutOfMemory) {
		v.verdict.Divergence = &Divergence{Row: row, Want: fmt.Sprintf("alloc of %d bytes", e.Size), Got: "out of memory"}
		return nil
	} else if err != nil {
		return err
	}
	v.ptrs[e.ID] = p
	v.verdict.Allocs++
	if uint64(p) != e.Addr {
		v.verdict.Divergence = &Divergence{Row: row,
			Want: fmt.Sprintf("alloc of %d bytes at %#x", e.Size, e.Addr), Got: fmt.Sprintf("it at %#x", uint64(p)),
		}
	} else if len(v.dev.script) > 0 {
		next := v.dev.script[0]
		v.verdict.Divergence = &Divergence{Row: next.row, Want: next.String(), Got: fmt.Sprintf("an alloc of %d bytes without it", e.Size)}
	}
	return nil
}

// requestFree frees a block that stays pending until its free is complete. The event costs nothing when that is at once.
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

// finish replays what is left and closes the account.
func (v *verifier) finish() error {
	if v.verdict.Divergence == nil {
		if v.dev.frees() > 0 {
			if err := v.torch.Empty(); errors.Is(err, errDiverged) {
				v.verdict.Divergence = v.dev.diverged
			} else if err != nil {
				return err
			}
		}
		if len(v.dev.script) > 0 && v.verdict.Divergence == nil {
			next := v.dev.script[0]
			v.verdict.Divergence = &Divergence{Row: next.row, Want: next.String(), Got: "nothing"}
		}
	}
	v.verdict.PeakReplayed = v.torch.Stats().PeakReserved
	return nil
}
