package capture

import (
	"fmt"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// freed is what a thread's last call was about to free. It is restored if the thread's next record says that the call failed.
type freed struct {
	at    uint64
	block block
}

// memory interprets a record of device memory.
func (in *interpreter) memory(r *ring.Record) {
	switch r.Kind {
	case ring.Free:
		in.free(r, in.blocks)
	case ring.FreeFailed:
		in.restore(r, in.blocks)
	default:
		b := in.newBlock(r, kindOf(r.Kind))
		b.context = r.C
		in.settle(r, in.blocks, b)
	}
}

// host interprets a record of host memory.
func (in *interpreter) host(r *ring.Record) {
	switch r.Kind {
	case ring.HostFree:
		in.free(r, in.pinned)
	case ring.HostFreeFailed:
		in.restore(r, in.pinned)
	default:
		b := in.newBlock(r, trace.KindPinned)
		b.context = r.C
		in.settle(r, in.pinned, b)
	}
}

// settle adds a block at the address of its record. A block that was there is gone, though its free was not recorded.
func (in *interpreter) settle(r *ring.Record, blocks map[uint64]block, b block) {
	if old, ok := blocks[r.A]; ok {
		in.leave(r, &old, r.A)
	}
	in.come(r, &b, r.A)
	blocks[r.A] = b
}

// free removes the block at the address of a record, if there is one.
func (in *interpreter) free(r *ring.Record, blocks map[uint64]block) {
	b, ok := blocks[r.A]
	if !ok {
		delete(in.freed, r.Thread)
		return
	}
	delete(blocks, r.A)
	remember(in.freed, r.Thread, freed{r.A, b})
	in.leave(r, &b, r.A)
}

// restore adds a block again whose free failed.
func (in *interpreter) restore(r *ring.Record, blocks map[uint64]block) {
	f, ok := in.freed[r.Thread]
	if !ok || f.at != r.A {
		return
	}
	delete(in.freed, r.Thread)
	in.settle(r, blocks, f.block)
}

// pooled interprets a record of a memory pool.
func (in *interpreter) pooled(r *ring.Record) {
	p := in.pools[r.D]
	if p == nil {
		in.lastPool++
		p = &pool{name: fmt.Sprintf("driver pool %d", in.lastPool), device: r.Device, by: in.by(r)}
		in.pools[r.D] = p
	}
	switch r.Kind {
	case ring.PoolGone:
		in.hold(r, p, 0)
		delete(in.pools, r.D)
	case ring.PoolSize:
		in.hold(r, p, clampSize(r.B))
	default:
		b := in.newBlock(r, trace.KindPool)
		b.pool, b.stream = r.D, int64(r.C)
		in.settle(r, in.blocks, b)
	}
}

// hold writes a row for the growth or shrinkage of a pool to held bytes.
func (in *interpreter) hold(r *ring.Record, p *pool, held int64) {
	e := trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpSegmentAlloc, Size: held - p.held, Device: max(p.device, 0), Thread: r.Thread,
		Level: trace.LevelDriver,
	}
	if e.Size == 0 {
		return
	}
	in.count(p.device, e.Size)
	if e.Size < 0 {
		e.Op, e.Size = trace.OpSegmentFree, -e.Size
	}
	p.held = held
	in.out.row(e, in.tag(trace.KindPool, p.by), p.name, "")
}
