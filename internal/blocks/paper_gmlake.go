package blocks

import (
	"errors"
	"slices"

	"gm/internal/cuda"
	"gm/internal/units"
)

var gmlakeEntry = Entry{
	Name: "gmlake", InProcess: true,
	About: "stitching, Algorithm 1 of the GMLake paper; frag_limit=SIZE, request_limit=SIZE, stitch_limit=SIZE",
	configure: func(text string) (maker, error) {
		conf := DefaultGMLakeConf()
		err := conf.read(text)
		return func(dev cuda.Device, _ *Job) (Allocator, error) { return NewGMLake(dev, conf) }, err
	},
}

// read reads settings.
func (c *GMLakeConf) read(text string) error {
	return settings{
		"frag_limit": (*units.Bytes)(&c.FragLimit), "request_limit": (*units.Bytes)(&c.RequestLimit), "stitch_limit": (*units.Bytes)(&c.StitchLimit),
	}.read(text)
}

// GMLakeConf is the settings of GMLake.
type GMLakeConf struct {
	FragLimit    int64 // bytes; smaller primitive blocks are neither split nor stitched (section 4.2.3)
	RequestLimit int64 // bytes; nothing is stitched for smaller requests: fragLimit as the published code reads it
	StitchLimit  int64 // bytes of addresses that stitched blocks may take before the least recently used are freed
}

// DefaultGMLakeConf returns the settings of Algorithm 1 as printed, which stitches blocks of any size: the least memory with the most
// driver calls. The paper gives no figure for the limit of stitched addresses. This one is the default of the published code (autoGC).
func DefaultGMLakeConf() GMLakeConf { return GMLakeConf{StitchLimit: 1000 << 30} }

// GMLake is the allocator of the GMLake paper (Guo et al., ASPLOS 2024), sections 3 and 4 and Algorithm 1: primitive blocks of
// 2 MiB chunks, and stitched blocks that map the chunks of several primitive ones again at one range of addresses.
//
// Addresses that are dropped are unmapped once their stream is done with them. The paper does not treat private pools. Their requests
// are left to PyTorch's allocator, as a CUDA graph that is replayed uses addresses of freed blocks.
//
// A primitive block is free or active. A stitched block may be handed out while all its parts are free, for a request of
// exactly its size. Freed blocks are never merged: their sizes are the tape of the training loop.
type GMLake struct {
	besideTorch
	dev  cuda.Device
	conf GMLakeConf

	prims    []primitive
	stitched []stitch
	lakes    map[lakeKey]*lake
	idle     freeSet // stitched blocks without an active part, by (last use, number)
	uses     int64   // the clock of last uses
	held     int64   // bytes of addresses of stitched blocks

	index  index // what is handed out: 2*primitive, or 2*stitched+1
	lender lender
	limbo  *limbo
}

// lakeKey tells apart memory that is never mixed.
type lakeKey struct {
	stream cuda.Stream
	pool   Pool
}

// lake is the free blocks of one stream of one pool, by (size, address).
type lake struct {
	stream   cuda.Stream
	prims    freeSet
	stitched freeSet
}

// primitive is a pBlock.
type primitive struct {
	ptr    cuda.Ptr
	chunks []cuda.Handle
	lake   *lake
	active bool
	asked  int64   // bytes, rounded to 512, of the request that it serves by itself
	in     []int32 // the stitched blocks that it is part of
}

func (p *primitive) size() int64 { return int64(len(p.chunks)) * chunkSize }

// stitch is an sBlock.
type stitch struct {
	ptr     cuda.Ptr
	size    int64
	lake    *lake
	parts   []int32
	active  int   // parts that are active
	asked   int64 // bytes, rounded to 512, of the request that it serves
	lastUse int64 // while idle, its key in GMLake.idle
}

// NewGMLake returns an allocator on dev.
func NewGMLake(dev cuda.Device, conf GMLakeConf) (*GMLake, error) {
	beside, err := newBesideTorch(dev)
	if err != nil {
		return nil, err
	}
	g := &GMLake{besideTorch: beside, dev: dev, conf: conf, lakes: map[lakeKey]*lake{}, index: newIndex(), limbo: newLimbo(dev)}
	g.empty = g.Empty
	g.lender = newLender(dev, g.deactivate)
	return g, nil
}

// Malloc implements Allocator.
func (g *GMLake) Malloc(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil {
		return 0, err
	}
	if size < chunkSize || pool != 0 {
		return g.mallocTorch(size, stream, pool)
	}
	waiting := errors.Join(g.lender.process(), g.settled(g.limbo.process())) // if that fails there may still be other memory
	key := lakeKey{stream, pool}
	l := g.lakes[key]
	if l == nil {
		l = &lake{stream: stream}
		g.lakes[key] = l
	}
	rounded := roundUp(size, chunkSize)
	token, err := g.find(l, rounded)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		if err := g.Empty(); err != nil {
			return 0, err
		}
		g.stats.Retries++
		token, err = g.find(l, rounded)
	}
	if errors.Is(err, cuda.ErrOutOfMemory) {
		return 0, errors.Join(g.oom(size), waiting) // S5
	} else if err != nil {
		return 0, errors.Join(err, waiting)
	}
	p := g.activate(token, roundUp(size, minBlockSize))
	g.follow()
	g.stitchFree()
	return p, nil
}

// settled subtracts what the limbo released.
func (g *GMLake) settled(released int64, err error) error {
	g.stats.Reserved -= released
	return err
}

// find is BestFit of Algorithm 1, and the action for each of its states S1 to S4 (section 4.1). It returns the free block for a request
// of size bytes, a multiple of the chunk size.
func (g *GMLake) find(l *lake, size int64) (int32, error) {
	if at := l.stitched.seek(size, 0); l.stitched.valid(at) && l.stitched.at(at).size == size {
		return 2*l.stitched.at(at).id + 1, nil // S1
	}
	if at := l.prims.seek(size, 0); l.prims.valid(at) {
		best := l.prims.at(at)
		if best.size == size || best.size < g.conf.FragLimit {
			return 2 * best.id, nil // S1, or S2 with a block that is not split
		}
		front, err := g.cut(l, best.id, size, size >= g.conf.RequestLimit)
		return 2 * front, err // S2
	}
	if size < g.conf.RequestLimit {
		fresh, err := g.create(l, size)
		return 2 * fresh, err
	}
	return g.combine(l, size)
}

// combine is states S3 and S4: no free primitive block is large enough.
func (g *GMLake) combine(l *lake, size int64) (int32, error) {
	var parts []int32
	have := int64(0)
	for at := l.prims.before(l.prims.seek(size, 0)); l.prims.valid(at) && have < size; at = l.prims.before(at) {
		f := l.prims.at(at)
		if f.size < g.conf.FragLimit {
			break
		}
		parts = append(parts, f.id)
		have += f.size
	}
	if have > size { // S3
		last := len(parts) - 1
		front, err := g.cut(l, parts[last], g.prims[parts[last]].size()-(have-size), true)
		if err != nil {
			return 0, err
		}
		parts[last] = front
	} else if have < size { // S4
		fresh, err := g.create(l, size-have)
		if err != nil {
			return 0, err
		}
		parts = append(parts, fresh)
	}
	if len(parts) == 1 {
		return 2 * parts[0], nil
	}
	s, err := g.stitch(l, parts)
	return 2*s + 1, err
}

// cut splits a free primitive block and, if joined, stitches its halves: a later request of the whole size then finds them (Figure 9). It
// returns the front of size bytes.
func (g *GMLake) cut(l *lake, id int32, size int64, joined bool) (int32, error) {
	front, rest, err := g.split(id, size)
	if err != nil || !joined {
		return front, err
	}
	_, err = g.stitch(l, []int32{front, rest})
	return front, err
}

// create is Alloc: a new primitive block, the only way to take memory from the device.
func (g *GMLake) create(l *lake, size int64) (int32, error) {
	chunks, err := createChunks(g.dev, size)
	if err != nil {
		return 0, err
	}
	p, err := mapChunks(g.dev, chunks)
	if err != nil {
		return 0, errors.Join(err, releaseChunks(g.dev, chunks))
	}
	g.stats.reserve(size)
	g.follow()
	return g.addPrimitive(primitive{ptr: p, chunks: chunks, lake: l}), nil
}

func (g *GMLake) addPrimitive(p primitive) int32 {
	id := int32(len(g.prims))
	g.prims = append(g.prims, p)
	p.lake.prims.insert(free{p.size(), p.ptr, id})
	return id
}

// split cuts a free primitive block in two, each mapped at addresses of its own. Stitched blocks keep their mappings, and have both halves
// as parts in place of the whole.
func (g *GMLake) split(id int32, size int64) (front, rest int32, err error) {
	whole := g.prims[id]
	cut := size / chunkSize
	chunks := [2][]cuda.Handle{whole.chunks[:cut:cut], whole.chunks[cut:]}
	var ptrs [2]cuda.Ptr
	for i := range chunks {
		if ptrs[i], err = mapChunks(g.dev, chunks[i]); err != nil {
			if i == 1 {
				err = errors.Join(err, unmapChunks(g.dev, ptrs[0], size))
			}
			return 0, 0, err
		}
	}
	whole.lake.prims.remove(whole.size(), whole.ptr)
	var halves [2]int32
	for i := range halves {
		halves[i] = g.addPrimitive(primitive{ptr: ptrs[i], chunks: chunks[i], lake: whole.lake, in: slices.Clone(whole.in)})
	}
	for _, s := range whole.in {
		parts := make([]int32, 0, len(g.stitched[s].parts)+1)
		for _, part := range g.stitched[s].parts {
			if part == id {
				parts = append(parts, halves[0], halves[1])
			} else {
				parts = append(parts, part)
			}
		}
		g.stitched[s].parts = parts
	}
	g.prims[id] = primitive{}
	g.limbo.put(limboRange{ptr: whole.ptr, size: whole.size()}, whole.lake.stream)
	return halves[0], halves[1], nil
}

// stitch maps the chunks of free primitive blocks at one range of addresses, as a free stitched block.
func (g *GMLake) stitch(l *lake, parts []int32) (int32, error) {
	var chunks []cuda.Handle
	for _, part := range parts {
		chunks = append(chunks, g.prims[part].chunks...)
	}
	p, err := mapChunks(g.dev, chunks)
	if err != nil {
		return 0, err
	}
	id := int32(len(g.stitched))
	size := int64(len(chunks)) * chunkSize
	g.stitched = append(g.stitched, stitch{ptr: p, size: size, lake: l, parts: parts})
	for _, part := range parts {
		g.prims[part].in = append(g.prims[part].in, id)
	}
	g.held += size
	g.rest(id)
	return id, nil
}
