package replay

import (
	"errors"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// TestRecordedDevice makes one call where some are recorded: it is served as recorded, refused, or not what was recorded.
func TestRecordedDevice(t *testing.T) {
	const a, b, mib = cuda.Ptr(1 << 40), cuda.Ptr(2 << 40), int64(1 << 20)
	alloc := segmentRow{5, trace.OpSegmentAlloc, a, 2 * mib}
	free := segmentRow{6, trace.OpSegmentFree, a, 2 * mib}
	pages := segmentRow{7, trace.OpSegmentMap, a, 20 * mib}
	unmap := segmentRow{8, trace.OpSegmentUnmap, a, 20 * mib}
	type call func(d *recordedDevice) (cuda.Ptr, error)
	malloc := func(size int64) call { return func(d *recordedDevice) (cuda.Ptr, error) { return d.MemAlloc(size) } }
	release := func(p cuda.Ptr) call { return func(d *recordedDevice) (cuda.Ptr, error) { return 0, d.MemFree(p) } }
	reserve := func(d *recordedDevice) (cuda.Ptr, error) { return d.AddressReserve(1 << 30) }
	create := func(d *recordedDevice) (cuda.Ptr, error) { _, err := d.Create(20 * mib); return 0, err }
	access := func(p cuda.Ptr, size int64) call {
		return func(d *recordedDevice) (cuda.Ptr, error) { return 0, d.SetAccess(p, size) }
	}
	drop := func(p cuda.Ptr, size int64) call {
		return func(d *recordedDevice) (cuda.Ptr, error) { return 0, d.Unmap(p, size) }
	}
	for _, c := range []struct {
		about  string
		script []segmentRow
		call   call
		want   string // full, the text of a divergence, or "" for none
		at     cuda.Ptr
	}{
		{"a segment", []segmentRow{alloc, free}, malloc(2 * mib), "", a},
		{"of another size", []segmentRow{alloc}, malloc(4 * mib),
			"row 5: recorded segment_alloc of 2097152 bytes at 0x10000000000, replayed segment_alloc of 4194304 bytes", 0},
		{"where others are released", []segmentRow{free, alloc}, malloc(2 * mib), "full", 0},
		{"where pages are unmapped", []segmentRow{unmap}, malloc(2 * mib), "full", 0},
		{"where pages are mapped", []segmentRow{pages}, malloc(20 * mib), "row 7: recorded segment_map", 0},
		{"too many", nil, malloc(2 * mib), "row -1: recorded no call here, replayed segment_alloc of 2097152 bytes", 0},
		{"its release", []segmentRow{free}, release(a), "", 0},
		{"that of another", []segmentRow{free}, release(b), "row 6: recorded segment_free of 2097152 bytes at 0x10000000000, " +
			"replayed segment_free at 0x20000000000", 0},
		{"where pages are unmapped there", []segmentRow{unmap}, release(a), "row 8: recorded segment_unmap", 0},
		{"where none is recorded", nil, release(a), "row -1: recorded no call here", 0},
		{"a range", []segmentRow{pages}, reserve, "", a},
		{"where a segment is", []segmentRow{alloc}, reserve, "row 5: recorded no new expandable segment here", 0},
		{"where nothing is", nil, reserve, "row -1: recorded no new expandable segment here", 0},
		{"a page", []segmentRow{pages}, create, "", 0},
		{"where others are unmapped", []segmentRow{unmap, pages}, create, "full", 0},
		{"mapped", []segmentRow{pages}, access(a, 20*mib), "", 0},
		{"mapped elsewhere", []segmentRow{pages}, access(b, 20*mib), "row 7: recorded segment_map", 0},
		{"mapped in another size", []segmentRow{pages}, access(a, 40*mib), "row 7: recorded segment_map", 0},
		{"mapped where others are released", []segmentRow{unmap}, access(a, 20*mib), "row 8: recorded segment_unmap", 0},
		{"unmapped", []segmentRow{unmap}, drop(a, 20*mib), "", 0},
		{"unmapped elsewhere", []segmentRow{unmap}, drop(b, 20*mib), "row 8: recorded segment_unmap", 0},
	} {
		t.Run(c.about, func(t *testing.T) {
			d := &recordedDevice{Device: sim.New(0, sim.CostTable{}), script: c.script}
			if c.at == 0 && c.want == "" && len(c.script) > 0 && c.script[0].addr == a { // pages that can be mapped and unmapped
				h, err := d.Device.Create(20 * mib)
				if err := errors.Join(err, d.ReserveAt(a, 1<<30), d.Map(a, h)); err != nil {
					t.Fatal(err)
				}
			}
			at, err := c.call(d)
			switch {
			case c.want == "full":
				if !errors.Is(err, cuda.ErrOutOfMemory) || d.diverged != nil {
					t.Errorf("%v, %v", err, d.diverged)
				}
			case c.want != "":
				if !errors.Is(err, errDiverged) || d.diverged == nil || !strings.HasPrefix(d.diverged.Error(), c.want) {
					t.Errorf("%v, %v, want %q", err, d.diverged, c.want)
				}
			case err != nil || at != c.at:
				t.Errorf("%#x, %v", at, err)
			}
		})
	}
}

// traceOf writes a trace whose strings are those of preexisting rows: 1 without a block, 2 with one of 4 MiB.
func traceOf(t *testing.T, meta trace.Meta, rows ...trace.Event) *trace.Reader {
	t.Helper()
	return readerOf(t, traceFile(t, meta, rows...))
}

// TestVerifySmall replays a few rows, and expects where they diverge.
func TestVerifySmall(t *testing.T) {
	const a, mib = uint64(1 << 40), int64(1 << 20)
	op := func(op trace.Op, id, size int64, addr uint64, tag int32) trace.Event {
		return trace.Event{Op: op, ID: id, Size: size, Addr: addr, Tag: tag}
	}
	segment := op(trace.OpSegmentAlloc, 0, 20*mib, a, 0)
	for _, c := range []struct {
		about string
		rows  []trace.Event
		want  string // "" for no divergence
	}{
		{"as recorded", []trace.Event{segment, op(trace.OpAlloc, 1, 5*mib, a, 0), op(trace.OpAlloc, 2, 5*mib, a+5<<20, 0)}, ""},
		{"the first row is another", []trace.Event{op(trace.OpSegmentAlloc, 0, 22*mib, a, 0), op(trace.OpAlloc, 1, 5*mib, a, 0)}, "row 0: "},
		{"a segment too few", []trace.Event{segment, op(trace.OpAlloc, 1, 20*mib, a, 0), op(trace.OpAlloc, 2, 20*mib, a+1<<30, 0)}, "row 2: "},
		{"a segment too many at the end", []trace.Event{segment, op(trace.OpAlloc, 1, 5*mib, a, 0), op(trace.OpSegmentAlloc, 0, 20*mib, a+1<<30, 0)},
			"row 2: recorded segment_alloc of 20971520 bytes at 0x10040000000, replayed nothing"},
		{"the cache is emptied at the end", []trace.Event{segment, op(trace.OpAlloc, 1, 5*mib, a, 0), op(trace.OpFree, 1, 0, 0, 0),
			op(trace.OpSegmentFree, 0, 20*mib, a, 0)}, ""},
		{"of memory that was there before", []trace.Event{op(trace.OpSegmentAlloc, 0, 20*mib, a, 1), op(trace.OpAlloc, 1, 5*mib, a, 1),
			op(trace.OpAlloc, 2, 5*mib, a+5<<20, 0)}, ""},
		{"a segment of no bytes was not", []trace.Event{op(trace.OpSegmentAlloc, 0, 0, a+1<<30, 1), op(trace.OpSegmentAlloc, 0, 2*mib, a, 1),
			op(trace.OpAlloc, 2, 512, a, 0)}, ""},
		{"one at an address that is not known cannot be", []trace.Event{op(trace.OpSegmentAlloc, 0, 2*mib, 0, 1), op(trace.OpSegmentAlloc, 0, 2*mib, a, 1),
			op(trace.OpAlloc, 1, 512, a, 0)}, "row 2: recorded a peak of 4194304 bytes reserved, replayed one of 2097152"},
		{"only what was there before", []trace.Event{op(trace.OpSegmentAlloc, 0, 2*mib, a, 1)}, ""},
	} {
		t.Run(c.about, func(t *testing.T) {
			verdicts, err := Verify(traceOf(t, trace.Meta{}, c.rows...), 0)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if d := verdicts[0].Divergence; d != nil {
				got = d.Error()
			}
			if !strings.HasPrefix(got, c.want) || got != "" && c.want == "" {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestRunFollowsAddresses: what was there before the recording, and each segment, has the recorded address. Pages of expandable segments are not
// among those.
func TestRunFollowsAddresses(t *testing.T) {
	p := &Program{Align: 512}
	p.Initial = []blocks.Segment{
		{Addr: 1 << 40, Size: 20 << 20, Expandable: true},
		{Addr: 2 << 40, Size: 20 << 20, Live: []blocks.Held{{Addr: 2<<40 + 4<<20, Size: 16 << 20}}},
	}
	p.InitialTensors = []int32{p.tensor(16<<20, 0, 0)}
	p.step(Alloc, 0, 0, 0)
	p.step(Alloc, p.tensor(30<<20, 0, 0), 1, 0)
	p.Segments = []sim.Range{{Addr: 3 << 40, Size: 30 << 20}}
	dev := sim.New(0, sim.CostTable{})
	a, err := blocks.NewTorch(dev, allocconf.Default())
	if err != nil {
		t.Fatal(err)
	}
	live, err := Until(t.Context(), p, a, dev, 1)
	if err != nil || live[0] != 2<<40+4<<20 || live[1] != 3<<40 {
		t.Errorf("%#x, %v", live, err)
	}
}
