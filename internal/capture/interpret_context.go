package capture

import (
	"maps"
	"slices"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// context interprets a record of a context.
func (in *interpreter) context(r *ring.Record) {
	switch r.Kind {
	case ring.ContextGone:
		in.contextGone(r)
	case ring.Grew:
		in.grew(r)
	default:
		in.contextMade(r)
	}
}

// settled in D of a context's record marks its size as known: B minus C, after NVML was asked.
const settled = 1<<64 - 1

// contextMade interprets the creation of a context. If only NVML knows its size, that is put into the record, so that a replay of the
// journal finds it there.
func (in *interpreter) contextMade(r *ring.Record) {
	if in.made[r.A] {
		return // recorded by two threads at once
	}
	in.made[r.A] = true
	b := block{device: r.Device, context: r.A, kind: trace.KindContext, tag: string(trace.KindContext)}
	if r.C > 0 || r.D == settled {
		b.size = max(clampSize(r.B)-clampSize(r.C), 0)
	} else if r.B > 0 && in.card != nil {
		d := in.devices[r.Device]
		b.size = in.card.contextSize(d.uuid, r.D, clampSize(r.B), d.traced)
		r.B, r.C, r.D = uint64(b.size), 0, settled
	}
	if r.Kind == ring.Primary {
		in.primary[r.Device] = r.A
	}
	if b.size > 0 {
		in.come(r, &b, 0)
	}
	in.keepInContext(r.A, b) // another thread may have loaded code into it before this record
}

// grew interprets that a context took more memory for itself.
func (in *interpreter) grew(r *ring.Record) {
	b := in.newBlock(r, trace.KindModule)
	b.context = r.C
	if r.D == ring.GrowthLimit {
		b.kind, b.tag = trace.KindContext, in.tag(trace.KindContext, b.by)
	}
	in.come(r, &b, 0)
	in.keepInContext(r.C, b)
}

func (in *interpreter) keepInContext(context uint64, b block) {
	in.contexts[context] = append(in.contexts[context], b)
	in.inContexts++
}

// contextGone interprets the end of a context: all of its memory is gone; with a device's primary context, its pools too.
func (in *interpreter) contextGone(r *ring.Record) {
	context, primary := r.A, r.A == 0
	if primary {
		context = in.primary[r.Device]
	}
	if context == 0 {
		return
	}
	gone := func(b *block) bool {
		return b.context == context || primary && b.kind == trace.KindPool && b.device == r.Device
	}
	for _, blocks := range []map[uint64]block{in.blocks, in.pinned} {
		in.leaveAll(r, blocks, gone)
	}
	for _, handle := range slices.Sorted(maps.Keys(in.pools)) {
		if p := in.pools[handle]; primary && p.device == r.Device {
			in.hold(r, p, 0)
		}
	}
	own := in.contexts[context]
	in.inContexts -= len(own)
	delete(in.contexts, context)
	delete(in.made, context)
	for i := range own {
		if own[i].id == 0 {
			continue
		}
		in.leave(r, &own[i], 0)
	}
}

// leaveAll removes the blocks for which gone is true.
func (in *interpreter) leaveAll(r *ring.Record, blocks map[uint64]block, gone func(*block) bool) {
	for _, at := range slices.Sorted(maps.Keys(blocks)) {
		b := blocks[at]
		if !gone(&b) {
			continue
		}
		delete(blocks, at)
		in.leave(r, &b, at)
	}
}
