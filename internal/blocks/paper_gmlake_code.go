package blocks

import (
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
	"gm/internal/units"
)

var gmlakeCodeEntry = Entry{
	Name: "gmlake-code", About: "stitching as GMLake's code does it; fragLimit=SIZE, reuseLimit=X, autoGC=GIB, defragLevel=N",
	configure: func(text string) (maker, error) {
		conf := DefaultGMLakeCodeConf()
		err := conf.read(text)
		return func(dev cuda.Device, _ *Job) (Allocator, error) { return NewGMLakeCode(dev, conf) }, err
	},
}

// read reads settings.
func (c *GMLakeCodeConf) read(text string) error {
	known := settings{
		"fragLimit": (*units.Bytes)(&c.FragLimit), "reuseLimit": &c.ReuseLimit, "autoGC": &c.AutoGC, "defragLevel": &c.Level,
	}
	if err := known.read(text); err != nil {
		return err
	}
	if c.ReuseLimit < 1 {
		return fmt.Errorf("setting reuseLimit: %g is below 1", c.ReuseLimit)
	}
	if c.Level > 2 {
		return fmt.Errorf("setting defragLevel: %d is neither 0, 1 nor 2", c.Level)
	}
	return nil
}

// GMLakeCodeConf is the settings of GMLake's published code, by the names of its environment variables.
type GMLakeCodeConf struct {
	FragLimit  int64   // fragLimit: bytes; only requests of this size and more are stitched
	ReuseLimit float64 // reuseLimit: how many times its size an idle stitched block may be that serves a request
	AutoGC     int64   // autoGC: GiB of addresses of stitched blocks above which the idle ones are freed
	Level      int64   // defragLevel: the first attempt to stitch: 0 before the device is asked for memory, 1 after, 2 when the cache was emptied
}

// DefaultGMLakeCodeConf returns the defaults of the published code.
func DefaultGMLakeCodeConf() GMLakeCodeConf {
	return GMLakeCodeConf{FragLimit: 512 << 20, ReuseLimit: 10, AutoGC: 1000}
}

// GMLakeCode is what GMLake's published code does (github.com/antgroup/glake, GMLake/src/CUDACachingAllocator.cpp, 2023-10),
// without its defects: PyTorch's allocator of that time with large segments made of 2 MiB chunks, whose free blocks are
// split and merged with no driver call, and stitched blocks over the chunks of free blocks.
type GMLakeCode struct {
	besideTorch // requests up to 1 MiB
	dev         cuda.Device
	conf        GMLakeCodeConf

	store    store       // primitive blocks
	spans    []span      // by primitive block, its chunks
	chunks   []lakeChunk // by number; those of a segment are numbered in a row
	stitched []fused
	pools    map[lakeKey]*codeLake
	order    []*codeLake
	held     int64 // bytes of addresses of stitched blocks

	index  index // what is handed out: 2*primitive, or 2*stitched+1
	asked  map[int32]int64
	lender lender
}

// span is a run of chunks.
type span struct{ first, n int32 }

type lakeChunk struct {
	handle cuda.Handle
	owner  int32   // the primitive block that holds it
	in     []int32 // the stitched blocks that map it
}

// fused is a stitched block.
type fused struct {
	ptr    cuda.Ptr
	lake   *codeLake
	chunks []int32
	busy   int   // of its chunks
	used   int32 // chunks that the request it serves takes, from the first; 0 when it serves none
}

func (f *fused) size() int64 { return int64(len(f.chunks)) * chunkSize }

// codeLake is the free blocks of one stream of one pool, by (size, address).
type codeLake struct {
	key      lakeKey
	prims    freeSet
	stitched freeSet
}

// NewGMLakeCode returns an allocator on dev.
func NewGMLakeCode(dev cuda.Device, conf GMLakeCodeConf) (*GMLakeCode, error) {
	beside, err := newBesideTorch(dev)
	if err != nil {
		return nil, err
	}
	g := &GMLakeCode{
		besideTorch: beside, dev: dev, conf: conf, pools: map[lakeKey]*codeLake{}, index: newIndex(), asked: map[int32]int64{},
	}
	g.empty = g.Empty
	g.lender = newLender(dev, g.update)
	return g, nil
}

// Malloc implements Allocator.
func (g *GMLakeCode) Malloc(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil {
		return 0, err
	}
	if size <= smallSize {
		return g.mallocTorch(size, stream, pool)
	}
	if err := g.lender.process(); err != nil {
		return 0, err
	}
	key := lakeKey{stream, pool}
	l := g.pools[key]
	if l == nil {
		l = &codeLake{key: key}
		g.pools[key] = l
		g.order = append(g.order, l)
	}
	token, err := g.find(l, roundUp(size, chunkSize))
	if err != nil {
		return 0, err
	}
	if token == none {
		return 0, g.oom(size)
	}
	g.asked[token] = roundUp(size, minBlockSize)
	g.stats.allocate(g.asked[token])
	g.follow()
	p := g.address(token)
	g.index.Put(p, token)
	return p, nil
}

func (g *GMLakeCode) address(token int32) cuda.Ptr {
	if token%2 == 0 {
		return g.store.at(token / 2).ptr
	}
	return g.stitched[token/2].ptr
}

// find returns a block for size bytes, a multiple of the chunk size, that is marked as in use, or none.
func (g *GMLakeCode) find(l *codeLake, size int64) (int32, error) {
	if token := g.reuse(l, size); token != none {
		return token, nil
	}
	if token, err := g.stitch(l, size, 0); token != none || err != nil {
		return token, err
	}
	if token, err := g.create(l, size); token != none || err != nil {
		return token, err
	}
	if token, err := g.stitch(l, size, 1); token != none || err != nil {
		return token, err
	}
	if err := g.Empty(); err != nil {
		return none, err
	}
	g.stats.Retries++
	if token, err := g.create(l, size); token != none || err != nil {
		return token, err
	}
	return g.stitch(l, size, 2)
}

// reuse takes the best fitting free primitive block, else a free stitched block that is not too large.
func (g *GMLakeCode) reuse(l *codeLake, size int64) int32 {
	if at := l.prims.seek(size, 0); l.prims.valid(at) {
		id := g.splitTo(l.prims.at(at).id, size)
		g.occupy(id)
		return 2 * id
	}
	at := l.stitched.seek(size, 0)
	if !l.stitched.valid(at) || float64(l.stitched.at(at).size) > float64(size)*g.conf.ReuseLimit {
		return none
	}
	id := l.stitched.at(at).id
	g.serve(id, int32(size/chunkSize))
	return 2*id + 1
}

// splitTo cuts a free primitive block, so that it has size bytes, and returns it. The rest stays free.
func (g *GMLakeCode) splitTo(id int32, size int64) int32 {
	b := g.store.at(id)
	if b.size == size {
		return id
	}
	l := g.lakeOf(id)
	l.prims.remove(b.size, b.ptr)
	front := g.store.splitFront(id, size)
	cut := int32(size / chunkSize)
	s := g.spans[id]
	g.setSpan(front, span{s.first, cut})
	g.setSpan(id, span{s.first + cut, s.n - cut})
	l.prims.insert(g.store.at(id).asFree(id))
	l.prims.insert(g.store.at(front).asFree(front))
	return front
}

func (g *GMLakeCode) lakeOf(id int32) *codeLake { return g.order[g.store.at(id).pool] }

// setSpan assigns chunks to a primitive block.
func (g *GMLakeCode) setSpan(id int32, s span) {
	for int(id) >= len(g.spans) {
		g.spans = append(g.spans, span{})
	}
	g.spans[id] = s
	for c := s.first; c < s.first+s.n; c++ {
		g.chunks[c].owner = id
	}
}

// occupy marks a free primitive block and its chunks as in use.
func (g *GMLakeCode) occupy(id int32) {
	b := g.store.at(id)
	g.lakeOf(id).prims.remove(b.size, b.ptr)
	b.used = true
	for c := g.spans[id].first; c < g.spans[id].first+g.spans[id].n; c++ {
		g.takeChunk(c)
	}
}

func (g *GMLakeCode) takeChunk(c int32) {
	for _, s := range g.chunks[c].in {
		f := &g.stitched[s]
		if f.busy++; f.busy == 1 {
			f.lake.stitched.remove(f.size(), f.ptr)
		}
	}
}

// vacate frees a primitive block in use, with its chunks.
func (g *GMLakeCode) vacate(id int32) {
	for c := g.spans[id].first; c < g.spans[id].first+g.spans[id].n; c++ {
		for _, s := range g.chunks[c].in {
			f := &g.stitched[s]
			if f.busy--; f.busy == 0 {
				f.lake.stitched.insert(free{f.size(), f.ptr, s})
			}
		}
	}
	g.freePrimitive(id)
}

// freePrimitive joins a block that is no longer in use with its free neighbours.
func (g *GMLakeCode) freePrimitive(id int32) {
	l := g.lakeOf(id)
	b := g.store.at(id)
	b.used = false
	for _, j := range [2]int32{b.prev, b.next} {
		if j == none || g.store.at(j).used {
			continue
		}
		n := g.store.at(j)
		l.prims.remove(n.size, n.ptr)
		a, s := g.spans[id], g.spans[j]
		g.store.absorb(id, j)
		g.setSpan(id, span{min(a.first, s.first), a.n + s.n})
	}
	l.prims.insert(g.store.at(id).asFree(id))
}

// serve marks the first n chunks of an idle stitched block as in use. Primitive blocks that hold others as well are split.
func (g *GMLakeCode) serve(id, n int32) {
	chunks := g.stitched[id].chunks[:n]
	for i := 0; i < len(chunks); {
		owner := g.chunks[chunks[i]].owner
		if before := chunks[i] - g.spans[owner].first; before > 0 {
			g.splitTo(owner, int64(before)*chunkSize)
		}
		run := int32(1)
		for i+int(run) < len(chunks) && chunks[i+int(run)] == chunks[i]+run && run < g.spans[owner].n {
			run++
		}
		owner = g.splitTo(owner, int64(run)*chunkSize)
		g.occupy(owner)
		i += int(run)
	}
	g.stitched[id].used = n
}

// update frees what was handed out.
func (g *GMLakeCode) update(token int32) {
	id := token / 2
	if token%2 == 0 {
		g.vacate(id)
		return
	}
	used := g.stitched[id].chunks[:g.stitched[id].used]
	g.stitched[id].used = 0
	for len(used) > 0 {
		owner := g.chunks[used[0]].owner
		used = used[g.spans[owner].n:]
		g.vacate(owner)
	}
}

// stitch serves a request from free primitive blocks of its lake, the largest first, mapped at one range of addresses. It returns none if
// they are not enough, the request is below the limit, or the settings allow stitching only in a later attempt.
func (g *GMLakeCode) stitch(l *codeLake, size int64, attempt int64) (int32, error) {
	if size < g.conf.FragLimit || attempt < g.conf.Level {
		return none, nil
	}
	var parts []int32
	have := int64(0)
	for at := l.prims.before(spot{len(l.prims.chunks), 0}); l.prims.valid(at) && have < size; at = l.prims.before(at) {
		parts = append(parts, l.prims.at(at).id)
		have += l.prims.at(at).size
	}
	if have < size || len(parts) < 2 {
		return none, nil
	}
	last := len(parts) - 1
	parts[last] = g.splitTo(parts[last], g.store.at(parts[last]).size-(have-size))
	f := fused{lake: l}
	var handles []cuda.Handle
	for _, part := range parts {
		s := g.spans[part]
		for c := s.first; c < s.first+s.n; c++ {
			f.chunks = append(f.chunks, c)
			handles = append(handles, g.chunks[c].handle)
		}
	}
	var err error
	if f.ptr, err = mapChunks(g.dev, handles); err != nil {
		return none, err
	}
	id := int32(len(g.stitched))
	for _, c := range f.chunks {
		g.chunks[c].in = append(g.chunks[c].in, id)
	}
	g.held += f.size()
	l.stitched.insert(free{f.size(), f.ptr, id})
	g.stitched = append(g.stitched, f)
	g.serve(id, int32(size/chunkSize))
	if g.held > g.conf.AutoGC<<30 {
		err = g.collect()
	}
	return 2*id + 1, err
}

// collect unmaps every stitched block that serves no request.
func (g *GMLakeCode) collect() error {
	for id := range g.stitched {
		if f := &g.stitched[id]; f.used == 0 && len(f.chunks) > 0 {
			if err := g.dropFused(int32(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *GMLakeCode) dropFused(id int32) error {
	f := g.stitched[id]
	if f.busy == 0 {
		f.lake.stitched.remove(f.size(), f.ptr)
	}
	for _, c := range f.chunks {
		in := &g.chunks[c].in
		*in = slices.DeleteFunc(*in, func(x int32) bool { return x == id })
	}
	g.held -= f.size()
	g.stitched[id] = fused{}
	return unmapChunks(g.dev, f.ptr, f.size())
}

// create takes a new segment from the device and serves the request from its front. It returns none when the device is full.
func (g *GMLakeCode) create(l *codeLake, size int64) (int32, error) {
	segment := size
	if size < minLarge {
		segment = 20 << 20
	}
	handles, err := createChunks(g.dev, segment)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		return none, nil
	} else if err != nil {
		return none, err
	}
	p, err := mapChunks(g.dev, handles)
	if err != nil {
		return none, errors.Join(err, releaseChunks(g.dev, handles))
	}
	g.stats.reserve(segment)
	g.follow()
	first := int32(len(g.chunks))
	for _, h := range handles {
		g.chunks = append(g.chunks, lakeChunk{handle: h})
	}
	id := g.store.add(block{
		ptr: p, size: segment, stream: l.key.stream, pool: int32(slices.Index(g.order, l)), prev: none, next: none, segment: none, mapped: true,
	})
	g.setSpan(id, span{first, int32(len(handles))})
	l.prims.insert(g.store.at(id).asFree(id))
	id = g.splitTo(id, size)
	g.occupy(id)
	return 2 * id, nil
}

// Empty implements Allocator: it unmaps the stitched blocks that serve no request and releases every segment that is then wholly free.
func (g *GMLakeCode) Empty() error {
	if err := g.lender.synchronize(); err != nil {
		return err
	}
	if err := g.collect(); err != nil {
		return err
	}
	for _, l := range g.order {
		for at := l.prims.first(); l.prims.valid(at); {
			id := l.prims.at(at).id
			if g.store.at(id).split() || g.stitchedOver(id) {
				at = l.prims.next(at)
				continue
			}
			l.prims.take(at)
			at = l.prims.onward(at)
			if err := g.releaseSegment(id); err != nil {
				return err
			}
		}
	}
	return g.torch.Empty()
}

// stitchedOver reports whether a stitched block still maps chunks of a primitive one.
func (g *GMLakeCode) stitchedOver(id int32) bool {
	s := g.spans[id]
	for c := s.first; c < s.first+s.n; c++ {
		if len(g.chunks[c].in) > 0 {
			return true
		}
	}
	return false
}

func (g *GMLakeCode) releaseSegment(id int32) error {
	b := g.store.at(id)
	s := g.spans[id]
	g.stats.Reserved -= b.size
	if err := unmapChunks(g.dev, b.ptr, b.size); err != nil {
		return err
	}
	for c := s.first; c < s.first+s.n; c++ {
		if err := g.dev.Release(g.chunks[c].handle); err != nil {
			return fmt.Errorf("release a chunk: %w", err)
		}
		g.chunks[c] = lakeChunk{owner: none}
	}
	g.store.remove(id)
	return nil
}

// Free implements Allocator.
func (g *GMLakeCode) Free(p cuda.Ptr) error {
	token, ok := g.index.Take(p)
	if !ok {
		return g.torch.Free(p)
	}
	g.stats.Allocated -= g.asked[token]
	delete(g.asked, token)
	if g.lender.lent(token) {
		return g.lender.await(token)
	}
	g.update(token)
	return nil
}

// RecordStream implements Allocator.
func (g *GMLakeCode) RecordStream(p cuda.Ptr, stream cuda.Stream) error {
	token, ok := g.index.Get(p)
	if !ok {
		return g.torch.RecordStream(p, stream)
	}
	if stream != g.streamOf(token) {
		g.lender.borrow(token, stream)
	}
	return nil
}

func (g *GMLakeCode) streamOf(token int32) cuda.Stream {
	if token%2 == 0 {
		return g.store.at(token / 2).stream
	}
	return g.stitched[token/2].lake.key.stream
}

// Holdings implements Allocator: the segments and what PyTorch's allocator holds beside them.
func (g *GMLakeCode) Holdings() []Holding {
	users := map[int32]cuda.Ptr{} // by primitive block, the address at which it is handed out
	g.index.Each(func(_ cuda.Ptr, id *int32) {
		token := *id
		if token%2 == 0 {
			users[token/2] = g.address(token)
			return
		}
		f := &g.stitched[token/2]
		for _, c := range f.chunks[:f.used] {
			users[g.chunks[c].owner] = f.ptr
		}
	})
	var all []Holding
	for _, head := range g.store.heads() {
		first := g.store.at(head)
		key := g.order[first.pool].key
		h := Holding{Address: first.ptr, Stream: key.stream, Pool: key.pool, Round: toMinBlock}
		for id := head; id != none; id = g.store.at(id).next {
			b := g.store.at(id)
			h.Size += b.size
			if at, ok := users[id]; ok {
				h.Uses = append(h.Uses, Use{at, b.size})
			} else if b.used {
				h.Pending += b.size
			}
		}
		all = append(all, h)
	}
	return append(all, g.torch.Holdings()...)
}
