package blocks

import (
	"errors"
	"slices"

	"gm/internal/cuda"
)

// rest adds a stitched block whose parts are all free to those that may be handed out.
func (g *GMLake) rest(id int32) {
	s := &g.stitched[id]
	g.uses++
	s.lastUse = g.uses
	s.lake.stitched.insert(free{s.size, s.ptr, id})
	g.idle.insert(free{s.lastUse, s.ptr, id})
}

// wake removes a stitched block from those that may be handed out.
func (g *GMLake) wake(id int32) {
	s := &g.stitched[id]
	s.lake.stitched.remove(s.size, s.ptr)
	g.idle.remove(s.lastUse, s.ptr)
}

// activate hands out a free block for a request of asked bytes.
func (g *GMLake) activate(token int32, asked int64) cuda.Ptr {
	g.stats.allocate(asked)
	id := token / 2
	if token%2 == 0 {
		g.prims[id].asked = asked
		g.activatePart(id)
		g.index.Put(g.prims[id].ptr, token)
		return g.prims[id].ptr
	}
	g.stitched[id].asked = asked
	for _, part := range g.stitched[id].parts {
		g.activatePart(part)
	}
	g.index.Put(g.stitched[id].ptr, token)
	return g.stitched[id].ptr
}

func (g *GMLake) activatePart(id int32) {
	p := &g.prims[id]
	p.active = true
	p.lake.prims.remove(p.size(), p.ptr)
	for _, s := range p.in {
		if g.stitched[s].active++; g.stitched[s].active == 1 {
			g.wake(s)
		}
	}
}

// deactivate is Update: it frees what was handed out. No memory moves.
func (g *GMLake) deactivate(token int32) {
	if token%2 == 0 {
		g.deactivatePart(token / 2)
		return
	}
	for _, part := range g.stitched[token/2].parts {
		g.deactivatePart(part)
	}
}

func (g *GMLake) deactivatePart(id int32) {
	p := &g.prims[id]
	p.active = false
	p.lake.prims.insert(free{p.size(), p.ptr, id})
	for _, s := range p.in {
		if g.stitched[s].active--; g.stitched[s].active == 0 {
			g.rest(s)
		}
	}
}

// stitchFree drops the least recently used idle stitched blocks until the rest are within the limit. Their chunks stay.
func (g *GMLake) stitchFree() {
	for g.held > g.conf.StitchLimit && !g.idle.empty() {
		g.dropStitched(g.idle.at(g.idle.first()).id)
	}
}

func (g *GMLake) dropStitched(id int32) {
	s := g.stitched[id]
	g.wake(id)
	for _, part := range s.parts {
		p := &g.prims[part]
		p.in = slices.DeleteFunc(p.in, func(x int32) bool { return x == id })
	}
	g.held -= s.size
	g.stitched[id] = stitch{}
	g.limbo.put(limboRange{ptr: s.ptr, size: s.size}, s.lake.stream)
}

// Free implements Allocator.
func (g *GMLake) Free(p cuda.Ptr) error {
	token, ok := g.index.Take(p)
	if !ok {
		return g.torch.Free(p)
	}
	if token%2 == 0 {
		g.stats.Allocated -= g.prims[token/2].asked
	} else {
		g.stats.Allocated -= g.stitched[token/2].asked
	}
	if g.lender.lent(token) {
		return g.lender.await(token)
	}
	g.deactivate(token)
	return nil
}

// RecordStream implements Allocator.
func (g *GMLake) RecordStream(p cuda.Ptr, stream cuda.Stream) error {
	token, ok := g.index.Get(p)
	if !ok {
		return g.torch.RecordStream(p, stream)
	}
	var l *lake
	if token%2 == 0 {
		l = g.prims[token/2].lake
	} else {
		l = g.stitched[token/2].lake
	}
	if stream != l.stream {
		g.lender.borrow(token, stream)
	}
	return nil
}

// Empty implements Allocator: it drops every idle stitched block and every free primitive block that is then part of none, and waits until
// their streams are done with them. During a capture it does nothing.
func (g *GMLake) Empty() error {
	if g.lender.capturing {
		return nil
	}
	if err := g.lender.synchronize(); err != nil {
		return err
	}
	for !g.idle.empty() {
		g.dropStitched(g.idle.at(g.idle.first()).id)
	}
	for id := range g.prims {
		p := &g.prims[id]
		if p.active || len(p.chunks) == 0 || len(p.in) > 0 {
			continue
		}
		p.lake.prims.remove(p.size(), p.ptr)
		g.limbo.put(limboRange{p.ptr, p.size(), p.chunks}, p.lake.stream)
		*p = primitive{}
	}
	return errors.Join(g.settled(g.limbo.synchronize()), g.torch.Empty())
}

// Capture is [Torch.Capture].
func (g *GMLake) Capture(on bool) error {
	return errors.Join(g.lender.capture(on), g.limbo.waiting.capture(on), g.torch.Capture(on))
}

// Holdings implements Allocator: the primitive blocks and what PyTorch's allocator holds beside them.
func (g *GMLake) Holdings() []Holding {
	pools := map[*lake]Pool{}
	for key, l := range g.lakes {
		pools[l] = key.pool
	}
	users := map[int32]cuda.Ptr{} // by primitive block, the address at which it is handed out
	g.index.Each(func(_ cuda.Ptr, id *int32) {
		token := *id
		if token%2 == 0 {
			users[token/2] = g.prims[token/2].ptr
			return
		}
		for _, part := range g.stitched[token/2].parts {
			users[part] = g.stitched[token/2].ptr
		}
	})
	var all []Holding
	for id := range g.prims {
		p := &g.prims[id]
		if len(p.chunks) == 0 {
			continue
		}
		h := Holding{Address: p.ptr, Size: p.size(), Stream: p.lake.stream, Pool: pools[p.lake], Round: toMinBlock}
		if at, ok := users[int32(id)]; ok {
			h.Uses = []Use{{at, h.Size}}
		} else if p.active {
			h.Pending = h.Size
		}
		all = append(all, h)
	}
	return append(all, g.torch.Holdings()...)
}
