package capture

import (
	"cmp"
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
	if _, known := in.contexts[r.A]; known {
		return nil // made by two threads at once
	}
	b := block{device: r.Device, context: r.A, kind: trace.KindContext}
	if r.C > 0 {
		b.size = max(clampSize(r.B)-clampSize(r.C), 0)
	} else if r.B > 0 {
		b.size = in.card.contextSize(in.devices[r.Device].uuid, int64(r.D), clampSize(r.B))
	}
	if r.Kind == ring.Primary {
		in.primary[r.Device] = r.A
	}
	var err error
	if b.size > 0 {
		err = in.come(r, &b, 0)
	}
	in.contexts[r.A] = []block{b}
	return err
}

// grew takes in that a context took more memory for itself.
func (in *interpreter) grew(r *ring.Record) error {
	b := in.newBlock(r, trace.KindModule)
	b.context = r.C
	if r.D == ring.GrowthLimit {
		b.kind = trace.KindContext
	}
	err := in.come(r, &b, 0)
	in.contexts[r.C] = append(in.contexts[r.C], b)
	return err
}

// contextGone takes in that a context is gone, and all of its memory with it.
func (in *interpreter) contextGone(r *ring.Record) error {
	context := r.A
	if context == 0 {
		context = in.primary[r.Device]
	}
	for _, at := range slices.Sorted(maps.Keys(in.blocks)) {
		b := in.blocks[at]
		if b.context != context || context == 0 {
			continue
		}
		delete(in.blocks, at)
		if err := in.leave(r, &b, at); err != nil {
			return err
		}
	}
	own := in.contexts[context]
	delete(in.contexts, context)
	slices.SortFunc(own, func(a, b block) int { return cmp.Compare(a.id, b.id) })
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
