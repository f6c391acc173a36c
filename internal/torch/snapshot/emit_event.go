package snapshot

import "gm/formats/trace"

// event writes the row of one event.
func (e *emitter) event(d *device, r *record) error {
	row := trace.Event{
		TimeNS: r.time, Op: r.op, Size: r.size, Addr: r.addr, Device: d.device, Stream: r.stream,
		Stack: r.stack, Tag: r.tag,
	}
	switch r.op {
	case trace.OpAlloc:
		return e.alloc(d, r, row)
	case trace.OpFreeRequested, trace.OpFreeCompleted:
		return e.free(d, r, row)
	case trace.OpSegmentAlloc, trace.OpSegmentFree, trace.OpSegmentMap, trace.OpSegmentUnmap:
		row.Pool = d.poolOf(r, r.addr)
	default:
		row.Pool = max(r.pool, 0)
	}
	return e.row(row)
}

func (d *device) poolOf(r *record, addr uint64) int32 {
	if r.pool >= 0 {
		return r.pool
	}
	return d.poolAt(addr, d.event)
}

func (e *emitter) alloc(d *device, r *record, row trace.Event) error {
	row.Addr = d.addrs[r.addr]
	block := &d.live[r.addr]
	if block.id != 0 {
		e.odd.replaced++
		if err := e.replaced(d, block, row); err != nil {
			return err
		}
	}
	if row.Size == 0 {
		e.odd.empty++
		return nil
	}
	e.id++
	row.ID = e.id
	row.Pool = d.poolOf(r, row.Addr)
	*block = liveBlock{id: e.id, size: row.Size, stream: row.Stream, pool: row.Pool}
	return e.row(row)
}

// replaced frees a block at whose address another one is allocated.
func (e *emitter) replaced(d *device, block *liveBlock, by trace.Event) error {
	row := trace.Event{
		TimeNS: by.TimeNS, Op: trace.OpFree, ID: block.id, Size: block.size, Addr: by.Addr, Device: d.device,
		Stream: block.stream, Pool: block.pool,
	}
	if block.pending {
		row.Op = trace.OpFreeCompleted
	}
	*block = liveBlock{}
	return e.row(row)
}

// free writes a free of either kind. A completion that was never requested, as where the recording was told to skip
// the requests, is a free at once.
func (e *emitter) free(d *device, r *record, row trace.Event) error {
	row.Addr = d.addrs[r.addr]
	block := &d.live[r.addr]
	if block.id == 0 || block.pending && r.op == trace.OpFreeRequested {
		e.odd.unmatched++
		return nil
	}
	row.ID, row.Pool = block.id, block.pool
	switch {
	case r.op == trace.OpFreeRequested:
		block.pending = true
	case block.pending:
		*block = liveBlock{}
	default:
		row.Op = trace.OpFree
		*block = liveBlock{}
	}
	return e.row(row)
}
