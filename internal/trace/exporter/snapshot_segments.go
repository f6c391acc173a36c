package exporter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gm/formats/trace"
)

// segments writes the segments of all devices, in order of address.
func (s *snapshot) segments() {
	type placed struct {
		device int32
		*segment
	}
	var all []placed
	for _, device := range s.survey.ordinals() {
		for _, seg := range s.heaps[device].segments {
			all = append(all, placed{device, seg})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.addr, b.addr) })
	list := s.listAt("segments")
	for _, p := range all {
		list.next()
		s.writeSegment(p.device, p.segment)
	}
	list.end()
}

func (s *snapshot) writeSegment(device int32, seg *segment) {
	var allocated, active, requested int64
	for _, b := range seg.blocks {
		active += int64(b.whole)
		requested += b.size
		if !b.pending {
			allocated += int64(b.whole)
		}
	}
	s.dict(func() {
		s.integerAt("device", int64(device))
		s.addressAt("address", seg.addr)
		s.addressAt("total_size", seg.size)
		s.integerAt("allocated_size", allocated)
		s.integerAt("active_size", active)
		s.integerAt("requested_size", requested)
		s.integerAt("stream", seg.stream)
		s.textAt("segment_type", map[bool]string{true: "small", false: "large"}[seg.small()])
		s.poolAt("segment_pool_id", s.words(seg.pool))
		s.booleanAt("is_expandable", seg.expandable)
		s.framesAt(seg.stack)
		list := s.listAt("blocks")
		for _, p := range seg.pieces() {
			list.next()
			s.writePiece(p)
		}
		list.end()
	})
}

func (s *snapshot) writePiece(p piece) {
	state, requested, stack := "inactive", int64(0), int32(0)
	if b := p.block; b != nil {
		state, requested, stack = "active_allocated", b.size, b.stack
		if b.pending {
			state = "active_pending_free"
		}
	}
	s.dict(func() {
		s.addressAt("address", p.addr)
		s.addressAt("size", p.size)
		s.integerAt("requested_size", requested)
		s.textAt("state", state)
		s.framesAt(stack)
	})
}

// poolAt writes the name of a pool, "a.b", as a pair of numbers.
func (s *snapshot) poolAt(key, name string) {
	first, second, _ := strings.Cut(name, ".")
	a, errA := strconv.ParseUint(first, 10, 63)
	b, errB := strconv.ParseUint(second, 10, 63)
	if errA != nil || errB != nil {
		a, b = 0, 0
		if name != "" {
			s.leave("segments and events have a pool whose name is no pair of numbers: they are in the default pool")
		}
	}
	s.pairAt(key, a, b)
}

// framesAt writes a stack as a list of frames, innermost first, in full the first time.
func (s *snapshot) framesAt(stack int32) {
	s.text("frames")
	if memo, known := s.stacks[stack]; known {
		s.get(memo)
		return
	}
	list := s.list()
	s.stacks[stack] = s.memoize()
	if stack != 0 {
		frames := strings.Split(s.words(stack), ";")
		slices.Reverse(frames)
		for _, f := range frames {
			list.next()
			s.frame(f)
		}
	}
	list.end()
}

// frame writes "name (file:line)" as a dict.
func (s *snapshot) frame(text string) {
	if memo, known := s.frames[text]; known {
		s.get(memo)
		return
	}
	frame := trace.ParseFrame(text)
	s.dict(func() {
		s.textAt("name", frame.Name)
		s.textAt("filename", frame.File)
		s.integerAt("line", frame.Line)
	})
	s.frames[text] = s.memoize()
}
