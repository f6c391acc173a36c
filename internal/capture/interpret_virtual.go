package capture

import (
	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// physical is physical memory. It lives while there is a handle to it or a mapping of it.
type physical struct {
	block
	handle     uint64
	references int
	mappings   int
}

// mapping is a range of addresses mapped to physical memory, which is nil if it was imported from another process.
type mapping struct {
	size     int64
	device   int32
	physical *physical
}

// unmapped is what a thread's last call was about to unmap.
type unmapped struct {
	addr uint64
	mapping
}

// virtual interprets a record of physical memory or of a mapping.
func (in *interpreter) virtual(r *ring.Record) {
	switch r.Kind {
	case ring.Create:
		in.create(r)
	case ring.Retain:
		in.retain(r)
	case ring.Release:
		in.release(r)
	case ring.ReleaseFailed:
		in.unrelease(r)
	case ring.Map:
		m := mapping{size: clampSize(r.B), device: r.Device, physical: in.physical[r.C]}
		in.enter(r, r.A, m)
	case ring.Unmap:
		in.unmap(r)
	case ring.UnmapFailed:
		in.remap(r)
	}
}

func (in *interpreter) create(r *ring.Record) {
	p := &physical{block: in.newBlock(r, trace.KindPhysical), handle: r.A, references: 1}
	if r.C == 1 {
		p.kind, p.tag = trace.KindPinned, in.tag(trace.KindPinned, p.by)
	}
	in.physical[r.A] = p
	in.come(r, &p.block, 0)
}

// retain counts a handle obtained from an address. All earlier handles may have been released.
func (in *interpreter) retain(r *ring.Record) {
	p := in.physical[r.A]
	if m, ok := in.mapped[r.B]; p == nil && ok {
		p = m.physical
	}
	if p != nil {
		p.references++
		p.handle = r.A
		in.physical[r.A] = p
	}
}

func (in *interpreter) release(r *ring.Record) {
	p := in.physical[r.A]
	if p == nil {
		delete(in.released, r.Thread)
		return // imported from another process, in whose trace it is
	}
	p.references--
	remember(in.released, r.Thread, p)
	if p.references > 0 {
		return
	}
	delete(in.physical, r.A)
	if p.mappings > 0 {
		return
	}
	in.leave(r, &p.block, 0)
}

// unrelease undoes a release whose call failed.
func (in *interpreter) unrelease(r *ring.Record) {
	p := in.released[r.Thread]
	if p == nil || p.handle != r.A {
		return
	}
	delete(in.released, r.Thread)
	p.references++
	in.physical[r.A] = p
	if p.references > 1 || p.mappings > 0 {
		return
	}
	in.come(r, &p.block, 0)
}

// enter adds a mapping.
func (in *interpreter) enter(r *ring.Record, addr uint64, m mapping) {
	if p := m.physical; p != nil {
		p.mappings++
	}
	in.mapped[addr] = m
	in.mapRow(r, trace.OpSegmentMap, addr, m)
}

// unmap removes the mappings of a range, one or several.
func (in *interpreter) unmap(r *ring.Record) {
	gone := in.unmapped[r.Thread][:0]
	end := r.A + min(r.B, trace.MaxSize)
	for addr := r.A; addr < end; {
		m, ok := in.mapped[addr]
		if !ok || m.size == 0 {
			break
		}
		delete(in.mapped, addr)
		gone = append(gone, unmapped{addr, m})
		in.mapRow(r, trace.OpSegmentUnmap, addr, m)
		if p := m.physical; p != nil {
			if p.mappings--; p.mappings == 0 && p.references == 0 {
				in.leave(r, &p.block, 0)
			}
		}
		addr += uint64(m.size)
	}
	remember(in.unmapped, r.Thread, gone)
}

// remap undoes an unmapping whose call failed.
func (in *interpreter) remap(r *ring.Record) {
	gone := in.unmapped[r.Thread]
	if len(gone) == 0 || gone[0].addr != r.A {
		return
	}
	delete(in.unmapped, r.Thread)
	for _, u := range gone {
		if p := u.physical; p != nil && p.mappings == 0 && p.references == 0 {
			in.come(r, &p.block, 0)
		}
		in.enter(r, u.addr, u.mapping)
	}
}

func (in *interpreter) mapRow(r *ring.Record, op trace.Op, addr uint64, m mapping) {
	by, kind, device := in.by(r), trace.KindPhysical, m.device
	if p := m.physical; p != nil {
		by, kind, device = p.by, p.kind, p.device
	}
	in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: op, Size: m.size, Addr: addr, Device: max(device, 0), Thread: r.Thread, Level: trace.LevelDriver,
	}, in.tag(kind, by), "", "")
}
