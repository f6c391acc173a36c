package main

import (
	"encoding/json"
	"slices"

	"gm/internal/blocks"
	"gm/internal/cuda"
)

// segmentViewer is an allocator that tells how its memory lies.
type segmentViewer interface {
	// Segments returns the ranges of addresses that have memory.
	Segments() []blocks.SegmentView
}

// snapshotSegment is a segment of torch.cuda.memory_snapshot().
type snapshotSegment struct {
	Device        int             `json:"device"`
	Address       uint64          `json:"address"`
	TotalSize     int64           `json:"total_size"`
	AllocatedSize int64           `json:"allocated_size"`
	ActiveSize    int64           `json:"active_size"`
	RequestedSize int64           `json:"requested_size"`
	Stream        int64           `json:"stream"`
	SegmentType   string          `json:"segment_type"`
	PoolID        [2]uint64       `json:"segment_pool_id"`
	IsExpandable  bool            `json:"is_expandable"`
	Blocks        []snapshotBlock `json:"blocks"`
}

type snapshotBlock struct {
	Address       uint64 `json:"address"`
	Size          int64  `json:"size"`
	RequestedSize int64  `json:"requested_size"`
	State         string `json:"state"`
}

// snapshotOrNone is snapshot, or no segments where that fails.
func (p *process) snapshotOrNone() (text []byte) {
	defer func() {
		if r := recover(); r != nil {
			p.log.printf("snapshot: BUG: %v", r)
			text = []byte("[]")
		}
	}()
	return p.snapshot()
}

// snapshot returns the segments of all devices as JSON.
func (p *process) snapshot() []byte {
	segments := []snapshotSegment{}
	p.each(func(g *gpu) { segments = append(segments, g.segments()...) })
	text, err := json.Marshal(segments)
	if err != nil {
		panic("BUG: a snapshot that JSON cannot hold: " + err.Error())
	}
	return text
}

func (g *gpu) segments() []snapshotSegment {
	g.collect()
	var views []blocks.SegmentView
	if v, ok := g.alloc.(segmentViewer); ok && !g.broken {
		views = v.Segments()
	}
	inC, live := g.small.segments(&g.ledger)
	views = append(views, inC...)
	ids := map[blocks.Pool]poolID{}
	for id, pool := range g.pools.numbers {
		ids[pool] = id
	}
	var segments []snapshotSegment
	for i := range views {
		segments = append(segments, g.segment(&views[i], live, ids))
	}
	shown := map[cuda.Ptr]bool{}
	for _, s := range segments {
		for _, b := range s.Blocks {
			shown[cuda.Ptr(b.Address)] = true
		}
	}
	for p, e := range live {
		if !shown[p] {
			segments = append(segments, g.segment(alone(&e), live, ids))
		}
	}
	slices.SortFunc(segments, func(a, b snapshotSegment) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	return segments
}

// alone is a live request that no segment shows, as a segment of its own.
func alone(e *entry) *blocks.SegmentView {
	return &blocks.SegmentView{
		Address: e.ptr, Size: e.taken, Stream: e.stream, Pool: blocks.Pool(e.pool), Small: e.taken <= smallRequest,
		Blocks: []blocks.BlockView{{Address: e.ptr, Size: e.taken, State: blocks.BlockUsed}},
	}
}

func (g *gpu) segment(v *blocks.SegmentView, live map[cuda.Ptr]entry, ids map[blocks.Pool]poolID) snapshotSegment {
	id := ids[v.Pool]
	s := snapshotSegment{
		Device: g.ordinal, Address: uint64(v.Address), TotalSize: v.Size, Stream: int64(v.Stream), SegmentType: "large",
		PoolID: [2]uint64{id.id0, id.id1}, IsExpandable: v.Expandable, Blocks: []snapshotBlock{},
	}
	if v.Small {
		s.SegmentType = "small"
	}
	for _, b := range v.Blocks {
		requested := int64(0)
		if e, ok := live[b.Address]; ok && b.State == blocks.BlockUsed {
			requested = e.requested
			s.AllocatedSize += b.Size
			s.RequestedSize += requested
		}
		if b.State != blocks.BlockFree {
			s.ActiveSize += b.Size
		}
		s.Blocks = append(s.Blocks, snapshotBlock{uint64(b.Address), b.Size, requested, b.State.String()})
	}
	return s
}
