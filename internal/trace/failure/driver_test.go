package failure_test

import (
	"bytes"
	"errors"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/failure"
)

// event is a row with a text for its tag.
type event struct {
	trace.Event
	tag string
}

// made writes a trace of rows on a device of 80 GiB.
func made(t *testing.T, capacity int64, rows []event) []byte {
	t.Helper()
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{Capacity: capacity})
	var b trace.Batch
	for i, e := range rows {
		e.TimeNS = int64(i)
		e.Tag = w.Strings().Code(e.tag)
		b.Append(e.Event)
	}
	if err := errors.Join(w.Write(&b), w.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestDriver judges failures by what the driver's rows say.
func TestDriver(t *testing.T) {
	driver := func(op trace.Op, id, size int64, free uint64, tag string) event {
		return event{trace.Event{Op: op, ID: id, Size: size, Addr: free, Level: trace.LevelDriver}, tag}
	}
	torch := func(op trace.Op, id, size int64, addr uint64) event {
		return event{trace.Event{Op: op, ID: id, Size: size, Addr: addr}, ""}
	}
	// PyTorch has a segment of 40 GiB with a tensor of 30, and asks for 20.
	begin := []event{
		driver(trace.OpAlloc, 1, gib/2, 0, "context"),
		driver(trace.OpAlloc, 2, 40*gib, 0, "memory by=pytorch"),
		torch(trace.OpSegmentAlloc, 0, 40*gib, 1<<40),
		torch(trace.OpAlloc, 3, 30*gib, 1<<40),
	}
	for name, c := range map[string]struct {
		rows   []event
		cause  failure.Cause
		limit  failure.Limit
		others int64
	}{
		"others have half of the device": {[]event{
			driver(trace.OpOOM, 0, 20*gib, 2*gib, "memory by=pytorch"), torch(trace.OpOOM, 0, 20*gib, 2*gib),
		}, failure.Limited, failure.OtherPrograms, 37*gib + gib/2},
		"the device is full": {[]event{
			driver(trace.OpAlloc, 4, 38*gib, 0, "memory by=nccl"),
			driver(trace.OpOOM, 0, 20*gib, gib, "memory by=pytorch"), torch(trace.OpOOM, 0, 20*gib, gib),
		}, failure.Full, failure.NoLimit, gib / 2},
		"the driver refuses what is there": {[]event{
			driver(trace.OpOOM, 0, 20*gib, 30*gib, "memory by=pytorch"), torch(trace.OpOOM, 0, 20*gib, 30*gib),
		}, failure.Limited, failure.DriverLimit, 9*gib + gib/2},
		"the driver is not asked": {[]event{
			driver(trace.OpOOM, 0, 60*gib, 30*gib, "memory by=pytorch"), torch(trace.OpAlloc, 4, gib, 1<<40+30*gib),
			torch(trace.OpOOM, 0, 20*gib, 30*gib),
		}, failure.Limited, failure.ProcessLimit, 9*gib + gib/2},
		"in pieces": {[]event{
			driver(trace.OpOOM, 0, 12*gib, 8*gib, "memory by=pytorch"), torch(trace.OpOOM, 0, 12*gib, 8*gib),
		}, failure.Fragmented, failure.NoLimit, 31*gib + gib/2},
		"a library, while PyTorch keeps enough": {[]event{
			driver(trace.OpOOM, 0, 5*gib, gib, "memory by=nccl"),
		}, failure.Cached, failure.NoLimit, 38*gib + gib/2},
		"a library, while others have enough": {[]event{
			driver(trace.OpOOM, 0, 15*gib, gib, "memory by=nccl"),
		}, failure.Limited, failure.OtherPrograms, 38*gib + gib/2},
		"a library, on a full device": {[]event{
			driver(trace.OpAlloc, 4, 38*gib, 0, "memory by=cublas"), driver(trace.OpOOM, 0, 15*gib, gib, "memory by=nccl"),
		}, failure.Full, failure.NoLimit, gib / 2},
		"what PyTorch got over is nothing": {[]event{driver(trace.OpOOM, 0, 20*gib, gib, "memory by=pytorch")}, "", "", 0},
	} {
		all := read(t, made(t, 80*gib, append(begin[:len(begin):len(begin)], c.rows...)))
		switch {
		case c.cause == "" && len(all) == 0:
		case len(all) != 1 || all[0].Cause != c.cause || all[0].Limit != c.limit || all[0].Others() != c.others:
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// TestUnknown: without segments nothing can be said. Each device has its own failure, the last one.
func TestUnknown(t *testing.T) {
	at := func(op trace.Op, id, size int64, device int32) event {
		return event{trace.Event{Op: op, ID: id, Size: size, Device: device}, ""}
	}
	all := read(t, made(t, 0, []event{
		at(trace.OpAlloc, 1, gib, 0), at(trace.OpOOM, 0, 2*gib, 1), at(trace.OpOOM, 0, 3*gib, 0),
		at(trace.OpAlloc, 2, mib, 0), at(trace.OpOOM, 0, 4*gib, 0), at(trace.OpAlloc, 3, mib, 0),
	}))
	if len(all) != 2 || all[0].Size != 4*gib || all[0].Nth != 2 || all[0].Later != 1 || all[0].Memory.Live != gib+mib ||
		all[0].Cause != failure.Unknown || all[1].Device != 1 || all[1].Size != 2*gib || all[1].Others() != 0 {
		t.Errorf("%+v", all)
	}
}
