package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gm/formats/trace"
	"gm/internal/cuda"
)

// traceBatch is how many rows are written at a time.
const traceBatch = 1 << 16

// writeTrace writes the events that are left of all devices, by time. Requests that were live at the oldest event come first, as rows
// that are older than the recording.
func writeTrace(to io.Writer, open []*gpu, log *logger) error {
	meta := trace.Meta{
		PID: int64(os.Getpid()), Command: strings.Join(commandLine(), " "), Source: "gmstitch", Alignment: 512,
		AllocConf: self.settings.alloc,
	}
	meta.Host, _ = os.Hostname()
	var lost uint64
	var events []tracedEvent
	for _, g := range open {
		meta.Capacity = g.meter.total
		if g.events == nil {
			continue
		}
		lost += g.events.lost()
		events = g.traced(events)
	}
	slices.SortStableFunc(events, func(a, b tracedEvent) int { return int(a.time - b.time) })
	if lost > 0 {
		log.printf("GM_STATS: the first %d requests and frees are not in the trace; GM_EVENTS=%d would hold all",
			lost, lost+uint64(self.settings.events))
	}
	w := traceWriter{Writer: trace.NewWriter(to, meta), live: map[place]int64{}}
	for i := range events {
		if err := w.add(&events[i]); err != nil {
			return fmt.Errorf("write the trace: %w", err)
		}
	}
	return w.end()
}

// tracedEvent is an event of a device.
type tracedEvent struct {
	event
	device      int32
	preexisting bool
}

// traced appends the events of a device. The requests that are older than all events come first, with the time of the oldest event.
func (g *gpu) traced(to []tracedEvent) []tracedEvent {
	first := len(to)
	born := map[cuda.Ptr]bool{}
	var begin int64
	g.events.each(func(e *event) {
		if begin == 0 {
			begin = e.time
		}
		if e.what == eventAlloc {
			born[e.ptr] = true
		} else if !born[e.ptr] {
			older := *e
			older.what, older.time = eventAlloc, begin
			to = append(to, tracedEvent{older, int32(g.ordinal), true})
		} else {
			delete(born, e.ptr)
		}
	})
	g.ledger.Each(func(_ cuda.Ptr, e *entry) {
		if !born[e.ptr] {
			older := event{time: begin, ptr: e.ptr, size: e.requested, stream: e.stream, pool: e.pool, what: eventAlloc}
			to = append(to, tracedEvent{older, int32(g.ordinal), true})
		}
	})
	slices.SortFunc(to[first:], func(a, b tracedEvent) int { return int(a.ptr) - int(b.ptr) })
	g.events.each(func(e *event) { to = append(to, tracedEvent{*e, int32(g.ordinal), false}) })
	return to
}

// place is an address of a device.
type place struct {
	device int32
	ptr    cuda.Ptr
}

// traceWriter numbers the requests.
type traceWriter struct {
	*trace.Writer
	batch trace.Batch
	live  map[place]int64
	last  int64
	time  int64
}

func (w *traceWriter) add(e *tracedEvent) error {
	at := place{e.device, e.ptr}
	w.time = max(w.time, e.time)
	row := trace.Event{
		TimeNS: w.time, Op: trace.OpFree, ID: w.live[at], Size: e.size, Addr: uint64(e.ptr), Device: e.device,
		Stream: int64(e.stream), Level: trace.LevelFramework,
	}
	if e.what == eventAlloc {
		w.last++
		w.live[at] = w.last
		row.Op, row.ID = trace.OpAlloc, w.last
	} else {
		delete(w.live, at)
	}
	if e.preexisting {
		row.Tag = w.Strings().Code(trace.PreexistingTag(0))
	}
	if e.pool != 0 {
		row.Pool = w.Strings().Code(fmt.Sprint(e.pool))
	}
	w.batch.Append(row)
	if w.batch.Len() < traceBatch {
		return nil
	}
	return w.flush()
}

func (w *traceWriter) flush() error {
	defer w.batch.Reset()
	return w.Write(&w.batch)
}

func (w *traceWriter) end() error {
	if err := w.flush(); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}
