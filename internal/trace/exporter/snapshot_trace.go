package exporter

import (
	"fmt"

	"gm/formats/trace"
)

// traces writes the history of each device. Memory that is older than the history has no entry; it follows from the entries and the
// state at the end.
func (s *snapshot) traces() error {
	list := s.listAt("device_traces")
	last := int32(-1)
	for _, device := range s.survey.ordinals() {
		for last++; last < device; last++ { // devices without rows
			list.next()
			s.list()
		}
		list.next()
		if err := s.trace(device); err != nil {
			return err
		}
	}
	list.end()
	return nil
}

// trace writes the history of a device.
func (s *snapshot) trace(device int32) error {
	entries := s.list()
	h := newHeap(s.heaps[device].recorded, s.round)
	err := s.each(func(r *trace.Reader, _ int64, e *trace.Event) error {
		if e.Device != device || e.Op == trace.OpMark || !s.survey.exported(e) {
			return nil
		}
		b := s.follow(h, r, e)
		if !h.begun {
			return nil
		}
		switch e.Op {
		case trace.OpAlloc, trace.OpFreeRequested, trace.OpFreeCompleted, trace.OpFree:
			if b == nil {
				if e.Op == trace.OpAlloc && e.Level == trace.LevelFramework {
					s.leave("allocations lie in no segment or overlap others: they are left out")
				}
				return nil
			}
			s.blockEntries(entries, e, b)
		case trace.OpOOM:
			entries.next()
			s.entry(e, "oom", "device_free", e.Addr, e.Size)
		case trace.OpSnapshot:
			entries.next()
			s.entry(e, "snapshot", "addr", 0, e.Size)
		default:
			if e.Op.Segment() && h.recorded {
				entries.next()
				s.entry(e, e.Op.String(), "addr", e.Addr, e.Size)
			}
		}
		return nil
	})
	entries.end()
	if err != nil {
		return fmt.Errorf("history of device %d: %w", device, err)
	}
	return nil
}

// blockEntries writes the entries of a row about a block. A free has two entries in a snapshot.
func (s *snapshot) blockEntries(entries *list, e *trace.Event, b *block) {
	actions := []string{e.Op.String()}
	if e.Op == trace.OpFree {
		actions = []string{trace.OpFreeRequested.String(), trace.OpFreeCompleted.String()}
		if b.pending {
			actions = actions[1:]
		}
	}
	for _, action := range actions {
		entries.next()
		s.entry(e, action, "addr", b.addr, b.size)
	}
}

// entry writes one entry of a history.
func (s *snapshot) entry(e *trace.Event, action, addrKey string, addr uint64, size int64) {
	s.dict(func() {
		s.textAt("action", action)
		s.addressAt(addrKey, addr)
		s.integerAt("size", size)
		s.integerAt("stream", e.Stream)
		s.integerAt("time_us", e.TimeNS/nsPerUS)
		s.textAt("compile_context", "N/A")
		s.textAt("user_metadata", s.words(e.Tag))
		if e.Op != trace.OpSnapshot {
			s.framesAt(e.Stack)
		}
		if e.Pool != 0 {
			s.poolAt("pool_id", s.words(e.Pool))
		}
	})
}
