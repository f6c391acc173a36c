package capture

import (
	"maps"
	"slices"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// context takes in a record of a context.
func (in *interpreter) context(r *ring.Record) error {
	switch r.Kind {
	case ring.ContextGone:
		return in.contextGone(r)
	case ring.Grew:
		return in.grew(r)
	}
	if in.made[r.A] {
		return nil // by two threads at once
	}
	in.made[r.A] = true
	b := block{device: r.Device, context: r.A, kind: trace.KindContext, tag: string(trace.KindContext)}
	if r.C > 0 {
		b.size = max(clampSize(r.B)-clampSize(r.C), 0)
	} else if r.B > 0 {
		d := in.devices[r.Device]
		b.size = in.card.contextSize(d.uuid, int64(r.D), clampSize(r.B), d.traced)
	}
	if r.Kind == ring.Primary {
		in.primary[r.Device] = r.A
	}
	var err error
	if b.size > 0 {
		err = in.come(r, &b, 0)
	}
	in.contexts[r.A] = append(in.contexts[r.A], b) // another thread may have loaded code into it before this was told
	return err
}

// grew takes in that a context took more memory for itself.
func (in *interpreter) grew(r *ring.Record) error {
	b := in.newBlock(r, trace.KindModule)
	b.context = r.C
	if r.D == ring.GrowthLimit {
		b.kind, b.tag = trace.KindContext, in.tag(trace.KindContext, b.by)
	}
	err := in.come(r, &b, 0)
	in.contexts[r.C] = append(in.contexts[r.C], b)
	return err
}

// contextGone takes in that a context is gone, and all of its memory with it: with a device's primary one its pools, too.
func (in *interpreter) contextGone(r *ring.Record) error {
	context, primary := r.A, r.A == 0
	if primary {
		context = in.primary[r.Device]
	}
	if context == 0 {
		return nil
	}
	gone := func(b *block) bool {
		return b.context == context || primary && b.kind == trace.KindPool && b.device == r.Device
	}
	for _, blocks := range []map[uint64]block{in.blocks, in.pinned} {
		if err := in.leaveAll(r, blocks, gone); err != nil {
			return err
		}
	}
	for _, handle := range slices.Sorted(maps.Keys(in.pools)) {
		if p := in.pools[handle]; primary && p.device == r.Device {
			if err := in.hold(r, p, 0); err != nil {
				return err
			}
		}
	}
	own := in.contexts[context]
	delete(in.contexts, context)
	delete(in.made, context)
	for i := range own {
		if own[i].id == 0 {
			continue
		}
		if err := in.leave(r, &own[i], 0); err != nil {
			return err
		}
	}
	return nil
}

// leaveAll removes the blocks that are gone.
func (in *interpreter) leaveAll(r *ring.Record, blocks map[uint64]block, gone func(*block) bool) error {
	for _, at := range slices.Sorted(maps.Keys(blocks)) {
		b := blocks[at]
		if !gone(&b) {
			continue
		}
		delete(blocks, at)
		if err := in.leave(r, &b, at); err != nil {
			return err
		}
	}
	return nil
}
