package snapshot

import (
	"fmt"
	"math"

	"gm/formats/trace"
	"gm/internal/torch/pickle"
)

// segment is one of the allocator's segments when the snapshot was taken. Of an expandable segment it is a range of
// addresses that is mapped without a gap.
type segment struct {
	addr, size uint64
	stream     int64
	pool       int32
	expandable bool
	blocks     []block // the active ones
	born       int64   // 1 plus the number of the event that allocated it; 0 when it is older than the history
}

// block is a part of a segment that is in use.
type block struct {
	addr    uint64
	size    uint64 // of the whole block
	asked   int64  // bytes that were asked for
	stack   int32
	pending bool // freed, but other streams may still use it
	active  bool
	placed  bool // the snapshot gives its address
}

// former is what the oldest snapshots say of the present use of a block: the first entry of its "history".
type former struct {
	size  int64
	stack int32
	known bool
}

// segment reads a segment, after its blocks.
func (s *snapshot) segment(v pickle.Value) error {
	index := s.read
	s.read++
	s.known = true
	blocks := s.blocks
	s.blocks = s.blocks[:0]
	seg, device, err := s.readSegment(v)
	if err != nil {
		return fmt.Errorf("segments[%d]: %w", index, err)
	}
	if seg.blocks, err = activeBlocks(seg, blocks); err != nil {
		return fmt.Errorf("segments[%d]: %w", index, err)
	}
	if err := checkDevice(device); err != nil {
		return fmt.Errorf("segments[%d]: %w", index, err)
	}
	s.last.segments[device] = append(s.last.segments[device], seg)
	return s.track(1 + len(seg.blocks))
}

func (s *snapshot) readSegment(v pickle.Value) (seg segment, device int32, err error) {
	hasAddr := false
	items := s.dec.Items(v)
	for i := 0; i+1 < len(items) && err == nil; i += 2 {
		value := items[i+1]
		var n int64
		switch s.field(items[i]) {
		case fieldDevice:
			n, err = s.integer("device", value, 0)
			device = int32(min(n, math.MaxInt32))
		case fieldAddress:
			hasAddr = true
			seg.addr, err = s.address("address", value)
		case fieldTotalSize:
			n, err = s.integer("total_size", value, 0)
			seg.size = uint64(n)
		case fieldStream:
			seg.stream, err = s.integer("stream", value, math.MinInt64)
		case fieldPool:
			seg.pool, err = s.pool(value)
			seg.pool = max(seg.pool, 0)
		case fieldExpandable:
			seg.expandable = value.True()
		}
	}
	if err == nil && (!hasAddr || seg.size > trace.MaxSize || seg.addr+seg.size < seg.addr) {
		err = fmt.Errorf("address %d and size %d", seg.addr, seg.size)
	}
	return seg, device, err
}

// activeBlocks returns those of a segment's blocks that are in use. Where the snapshot gives no addresses the blocks
// follow one another.
func activeBlocks(seg segment, blocks []block) ([]block, error) {
	var active []block
	next := seg.addr
	for i, b := range blocks {
		if !b.placed {
			b.addr = next
		}
		next = b.addr + b.size
		if b.addr < seg.addr || next < b.addr || next > seg.addr+seg.size {
			return nil, fmt.Errorf("blocks[%d], %d bytes at %d, lies outside of it", i, b.size, b.addr)
		}
		if b.active && b.asked > 0 {
			active = append(active, b)
		}
	}
	return active, nil
}

// block reads one block of the segment being read.
func (s *snapshot) block(v pickle.Value) error {
	b := block{asked: -1}
	var err error
	items := s.dec.Items(v)
	for i := 0; i+1 < len(items) && err == nil; i += 2 {
		value := items[i+1]
		var n int64
		var known bool
		switch s.field(items[i]) {
		case fieldAddress:
			b.placed = true
			b.addr, err = s.address("address", value)
		case fieldSize:
			n, err = s.integer("size", value, 0)
			b.size = uint64(n)
		case fieldRequested:
			b.asked, err = s.integer("requested_size", value, 0)
		case fieldState:
			b.active, b.pending, known = parseState(s.dec.Text(value))
			if !known {
				s.rec.odd.states++
			}
		case fieldFrames:
			b.stack, err = stackOf(value)
		}
	}
	if err == nil && b.size > trace.MaxSize {
		err = fmt.Errorf("size is %d", b.size)
	}
	if err != nil {
		return fmt.Errorf("segments[%d]: blocks[%d]: %w", s.read, len(s.blocks), err)
	}
	s.recall(&b)
	s.blocks = append(s.blocks, b)
	if len(s.blocks) > maxBlocks {
		return fmt.Errorf("segments[%d] has more than %d blocks", s.read, maxBlocks)
	}
	return nil
}

// recall fills in what only the block's history says.
func (s *snapshot) recall(b *block) {
	if s.former.known {
		if b.asked < 0 {
			b.asked = s.former.size
		}
		if b.stack == 0 {
			b.stack = s.former.stack
		}
	}
	if b.asked < 0 || b.asked > int64(b.size) {
		b.asked = int64(b.size)
	}
	s.former = former{}
}

func parseState(name string) (active, pending, known bool) {
	switch name {
	case "active_allocated":
		return true, false, true
	case "active_pending_free", "active_awaiting_free":
		return true, true, true
	}
	return false, false, name == "inactive"
}

// historyEntry reads one entry of a block's "history"; the first entry is the present one.
func (s *snapshot) historyEntry(v pickle.Value) error {
	if s.former.known {
		return nil
	}
	s.former.known = true
	var err error
	items := s.dec.Items(v)
	for i := 0; i+1 < len(items) && err == nil; i += 2 {
		switch s.field(items[i]) {
		case fieldRealSize:
			s.former.size, err = s.integer("real_size", items[i+1], 0)
		case fieldFrames:
			s.former.stack, err = stackOf(items[i+1])
		}
	}
	return err
}
