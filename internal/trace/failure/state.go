package failure

import (
	"cmp"
	"slices"

	"gm/formats/trace"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/recording"
)

// state follows the memory of one device up to its failure.
type state struct {
	failure  *Failure
	driven   bool // the trace has rows of the driver's level for the device
	text     func(code int32) string
	blocks   map[int64]block // by id
	segments recording.Ranges
	reserved int64
	limit    int64 // what the allocator may reserve is less, as far as its failures say; 0 if they say nothing
	conf     *allocconf.Conf
	obtained int64           // from the driver
	counted  map[int64]int64 // sizes of the allocations in it, by id
	refused  bool            // by the driver, since the framework's last row

	allocated bool // there was a block
	segmented bool // there was a segment
}

// block is an allocation that is live, or waits for other streams.
type block struct {
	addr    uint64
	size    int64
	whole   int64 // of the block, 0 if it is not known
	pending bool
}

func newState(f *Failure, driven bool, conf *allocconf.Conf, text func(int32) string) *state {
	return &state{failure: f, driven: driven, conf: conf, text: text, blocks: map[int64]block{}, counted: map[int64]int64{}}
}

// add processes a row of the device.
func (s *state) add(e *trace.Event) {
	if e.Level == trace.LevelDriver || e.Op == trace.OpSample {
		s.addDriver(e)
		return
	}
	if e.Op != trace.OpOOM && e.Op != trace.OpMark {
		s.refused = false
	}
	switch e.Op {
	case trace.OpAlloc:
		whole, _ := trace.ParsePreexisting(s.text(e.Tag))
		s.blocks[e.ID] = block{addr: e.Addr, size: e.Size, whole: whole}
		s.allocated = true
	case trace.OpFreeRequested:
		if b, ok := s.blocks[e.ID]; ok {
			b.pending = true
			s.blocks[e.ID] = b
		}
	case trace.OpFree, trace.OpFreeCompleted:
		delete(s.blocks, e.ID)
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		s.reserved += e.Size
		s.segmented = true
		s.segments.Add(e)
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		s.reserved = max(s.reserved-e.Size, 0)
		s.segments.Add(e)
	case trace.OpOOM:
		below := s.reserved + segmentSize(e.Size, s.conf)
		if s.reserved > 0 && int64(e.Addr) >= deviceSize(e.Size, s.conf) && (s.limit == 0 || below < s.limit) {
			s.limit = below
		}
	}
}

func (s *state) addDriver(e *trace.Event) {
	kind, _ := trace.ParseDriverTag(s.text(e.Tag))
	switch {
	case e.Op == trace.OpAlloc && kind.Obtained():
		s.obtained += e.Size
		s.counted[e.ID] = e.Size
	case e.Op == trace.OpFree || e.Op == trace.OpFreeCompleted:
		s.obtained -= s.counted[e.ID]
		delete(s.counted, e.ID)
	case e.Op == trace.OpSegmentAlloc:
		s.obtained += e.Size
	case e.Op == trace.OpSegmentFree:
		s.obtained -= e.Size
	case e.Op == trace.OpOOM:
		s.refused = true
	}
}

// describe completes the failure at its row.
func (s *state) describe(e *trace.Event) {
	f := s.failure
	f.TimeNS, f.Stack = e.TimeNS, s.text(e.Stack)
	f.Refused = s.refused
	if s.driven {
		f.Obtained = s.obtained
	}
	m := &f.Memory
	for _, b := range s.blocks {
		if b.pending {
			m.Pending += b.rounded(s.conf)
			continue
		}
		least := roundUp(b.size, allocconf.MinBlock)
		m.Live += b.size
		m.Rounding += least - b.size
		m.Tails += b.rounded(s.conf) - least
	}
	s.measure(e)
}

// reservedKnown reports whether the trace says what the framework's allocator had reserved when the request failed. That may be nothing:
// before the first block, or after segments were given back.
func (s *state) reservedKnown() bool {
	f := s.failure
	switch {
	case f.Memory.Reserved > 0:
		return true
	case f.By != "", f.Memory.Tensors() > 0:
		return false
	}
	return s.segmented || !s.allocated && f.Free > 0
}

// rounded returns the bytes of the block as far as they follow from its size.
func (b block) rounded(conf *allocconf.Conf) int64 { return max(b.whole, conf.RoundSize(b.size)) }

// measure finds what is idle in the segments, for the request of e.
func (s *state) measure(e *trace.Event) {
	m := &s.failure.Memory
	m.Reserved = s.reserved
	blocks := make([]block, 0, len(s.blocks))
	for _, b := range s.blocks {
		if b.addr > 0 {
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b block) int { return cmp.Compare(a.addr, b.addr) })
	for _, g := range s.segments.Spans() {
		from, _ := slices.BinarySearchFunc(blocks, g.Low, func(b block, at uint64) int { return cmp.Compare(b.addr, at) })
		to, _ := slices.BinarySearchFunc(blocks, g.High, func(b block, at uint64) int { return cmp.Compare(b.addr, at) })
		s.measureSegment(g, blocks[from:to], e)
	}
}

// Sizes of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp), in bytes.
const (
	smallSize    = 1 << 20 // requests of up to this size have segments of their own
	smallSegment = 2 << 20
	leastLarge   = 10 << 20 // requests of at least this size have a segment of their own size
	roundLarge   = 2 << 20
)

// measureSegment adds what is idle in a segment with these blocks.
func (s *state) measureSegment(g recording.Span, blocks []block, e *trace.Event) {
	m := &s.failure.Memory
	var idle, largest int64
	at := g.Low // where the last block ends
	for i := range len(blocks) + 1 {
		next := g.High
		if i < len(blocks) {
			next = blocks[i].addr
		}
		if gap := int64(next - min(at, next)); i > 0 && gap <= smallSize && !g.Mapped && !isSmall(g) {
			m.addTail(blocks[i-1], gap) // too small for a block of its own
		} else {
			idle += gap
			largest = max(largest, gap)
		}
		if i < len(blocks) {
			at = max(at, next+uint64(blocks[i].rounded(s.conf)))
		}
	}
	small := isSmall(g) || g.Mapped && len(blocks) > 0 && !slices.ContainsFunc(blocks, func(b block) bool { return b.size > smallSize })
	switch outside := s.failure.By != ""; {
	case !outside && g.Stream != e.Stream:
		m.Idle.Streams += idle
	case !outside && g.Pool != e.Pool:
		m.Idle.Pools += idle
	case !outside && small != (e.Size <= smallSize):
		m.Idle.Classes += idle
	default:
		m.Idle.Pieces += idle
		m.Largest = max(m.Largest, largest)
	}
}

func (m *Memory) addTail(b block, bytes int64) {
	if b.pending {
		m.Pending += bytes
	} else {
		m.Tails += bytes
	}
}

// isSmall reports whether a segment is one for small requests.
func isSmall(g recording.Span) bool { return !g.Mapped && g.High-g.Low <= smallSegment }

// segmentSize returns the bytes that PyTorch's allocator counts for a new segment that meets a request.
func segmentSize(size int64, conf *allocconf.Conf) int64 {
	switch {
	case size <= smallSize:
		return smallSegment
	case size < leastLarge:
		return conf.LargeSegment
	}
	return roundUp(size, roundLarge)
}

// deviceSize returns the bytes that the device must have free for it, at most: expandable segments grow by whole pages.
func deviceSize(size int64, conf *allocconf.Conf) int64 {
	if conf.Expandable && size > smallSize {
		return roundUp(size, conf.LargeSegment)
	}
	return segmentSize(size, conf)
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }
