package snapshot

import (
	"fmt"
	"math"

	"gm/formats/trace"
	"gm/internal/torch/pickle"
)

const (
	nsPerUs = 1000

	maxTag      = 64 << 10 // bytes of a text that an event carries
	maxTagBytes = 64 << 20 // bytes of all distinct ones
)

// event reads one entry of a device's trace.
func (s *snapshot) event(v pickle.Value) error {
	s.events++
	r, err := s.readEvent(v)
	if err == nil {
		err = s.entries.add(s.device, r)
	}
	if err != nil {
		return fmt.Errorf("device_traces[%d][%d]: %w", s.device, s.events-1, err)
	}
	return nil
}

// timeless is the time of an entry without time_us, as PyTorch before 2.1 wrote them.
const timeless = math.MinInt64

// readEvent reads the dict.
func (s *snapshot) readEvent(v pickle.Value) (record, error) {
	r := record{time: timeless, size: -1, pool: -1}
	act, hasAddr := actionUnknown, false
	items := s.dec.Items(v)
	for i := 0; i+1 < len(items); i += 2 {
		value := items[i+1]
		var err error
		switch s.field(items[i]) {
		case fieldAction:
			act = s.action(value)
		case fieldAddr:
			hasAddr = true
			r.addr, err = s.address("addr", value)
		case fieldSize:
			r.size, err = s.integer("size", value, 0)
		case fieldStream:
			r.stream, err = s.integer("stream", value, math.MinInt64)
		case fieldTime:
			r.time, err = s.time(value)
		case fieldFrames:
			r.stack, err = stackOf(value)
		case fieldMetadata:
			r.tag = s.tag(s.dec.Text(value))
		case fieldPool:
			r.pool, err = s.pool(value)
		}
		if err != nil {
			return r, err
		}
	}
	if act == actionUnknown {
		r.op, r.addr, r.size = opUnknown, 0, 0
		return r, nil
	}
	r.op = trace.Op(act - 1)
	if r.op != trace.OpSnapshot && r.op != trace.OpMark && (!hasAddr || r.size < 0) {
		return r, fmt.Errorf("%v without address or size", r.op)
	}
	if r.size > trace.MaxSize {
		return r, fmt.Errorf("%v of %d bytes", r.op, r.size)
	}
	r.size = max(r.size, 0)
	if r.op != trace.OpOOM && r.addr+uint64(r.size) < r.addr {
		return r, fmt.Errorf("%v of %d bytes at %d", r.op, r.size, r.addr)
	}
	return r, nil
}

// time returns microseconds as nanoseconds.
func (s *snapshot) time(v pickle.Value) (int64, error) {
	us, err := s.integer("time_us", v, 0)
	if err == nil && us > trace.MaxTime/nsPerUs {
		return 0, s.bad("time_us", v)
	}
	return us * nsPerUs, err
}

// tag returns the code of a text that an event carries; 0 when the trace has no room for more texts.
func (s *snapshot) tag(text string) int32 {
	if text == "" {
		return 0
	}
	texts := s.rec.texts
	known := texts.Len()
	if known >= maxTexts || s.rec.tagBytes >= maxTagBytes {
		s.rec.odd.tags++
		return 0
	}
	code := texts.Code(clip(text, maxTag))
	if texts.Len() > known {
		s.rec.tagBytes += len(text)
	}
	return code
}

// mark is a point that the user or the profiler named.
type mark struct {
	time   int64 // ns
	device int32
	tag    int32
}

// mark reads one external annotation.
func (s *snapshot) mark(v pickle.Value) error {
	var m mark
	var name, stage string
	items := s.dec.Items(v)
	for i := 0; i+1 < len(items); i += 2 {
		value := items[i+1]
		var err error
		var n int64
		switch s.field(items[i]) {
		case fieldName:
			name = s.dec.Text(value)
		case fieldStage:
			stage = s.dec.Text(value)
		case fieldTime:
			m.time, err = s.time(value)
		case fieldDevice:
			n, err = s.integer("device", value, 0)
			m.device = int32(min(n, math.MaxInt32))
		}
		if err != nil {
			return fmt.Errorf("external_annotations[%d]: %w", len(s.last.marks), err)
		}
	}
	if m.device > trace.MaxDevice {
		return fmt.Errorf("external_annotations[%d]: device %d", len(s.last.marks), m.device)
	}
	if stage != "" {
		name = clip(name, maxTag) + " " + stage
	}
	m.tag = s.tag(name)
	s.last.marks = append(s.last.marks, m)
	return s.track(1)
}

// clip shortens text to limit bytes.
func clip(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return text
}
