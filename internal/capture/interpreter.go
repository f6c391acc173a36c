package capture

import (
	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// interpreter turns the records of a process into rows of a trace. It follows what lives where, so that every byte that came goes
// once: physical memory when its last handle and its last mapping are gone, all of a context's memory with the context.
type interpreter struct {
	out  rowWriter
	card cardReader

	libraries libraries
	symbols   *symbols
	devices   map[int32]device
	tags      map[[2]string]string
	unknown   map[string]int // functions that were handed out in a version that is not followed, and how often
	oom       bool           // a request was refused

	lastID   int64
	lastPool int
	blocks   map[uint64]block     // device memory by its address, or its handle for arrays
	pinned   map[uint64]block     // host memory by its address
	physical map[uint64]*physical // by handle
	mapped   map[uint64]mapping   // by address
	pools    map[uint64]*pool     // by handle
	contexts map[uint64][]block   // by handle: what each took, and how it grew
	primary  map[int32]uint64     // contexts by device
	made     map[uint64]bool      // contexts of which it was told that they were made

	// What each thread's last call was about to take away, by thread.
	freed    map[int32]freed
	released map[int32]*physical
	unmapped map[int32][]unmapped
}

// rowWriter takes the rows of the driver's level. The texts are the tag, the pool's name and the folded stack.
type rowWriter interface {
	row(e trace.Event, tag, pool, stack string) error
}

// cardReader knows what NVML says, for what the driver does not.
type cardReader interface {
	// contextSize returns the bytes that a new context took, 0 when they cannot be told: it was begun at a time, when the process had
	// traced bytes of the device, and just after it was made, used bytes of the device were in use.
	contextSize(uuid [16]byte, beganNS, used, traced int64) int64
}

// device is a GPU as a process sees it.
type device struct {
	uuid   [16]byte
	name   string
	total  int64
	traced int64 // bytes that the process has obtained from the driver and not given back
}

// block is memory that lives.
type block struct {
	id      int64
	size    int64
	device  int32
	stream  int64
	context uint64
	pool    uint64
	kind    trace.Kind
	by      string
	tag     string // of kind and by
}

// pool is a memory pool of the driver.
type pool struct {
	name   string
	device int32
	held   int64 // bytes it has of the device
	by     string
}

func newInterpreter(out rowWriter, card cardReader) *interpreter {
	return &interpreter{
		out: out, card: card, symbols: newSymbols(), devices: map[int32]device{}, unknown: map[string]int{}, tags: map[[2]string]string{},
		blocks: map[uint64]block{}, pinned: map[uint64]block{}, physical: map[uint64]*physical{},
		mapped: map[uint64]mapping{}, pools: map[uint64]*pool{}, contexts: map[uint64][]block{}, primary: map[int32]uint64{}, made: map[uint64]bool{},
		freed: map[int32]freed{}, released: map[int32]*physical{}, unmapped: map[int32][]unmapped{},
	}
}

// take takes in the next record.
func (in *interpreter) take(r *ring.Record) error {
	r.Device, r.Thread = min(r.Device, trace.MaxDevice), max(r.Thread, 0)
	switch r.Kind {
	case ring.Library:
		in.libraries.add(library{from: r.A, to: r.B, offset: r.C, path: r.Text()})
		return nil
	case ring.Device:
		in.devices[r.Device] = device{
			uuid: r.UUID(), name: r.Text(), total: int64(r.C),
			traced: in.devices[r.Device].traced, // another thread may have been faster
		}
		return nil
	case ring.Unknown:
		in.unknown[r.Text()]++
		return nil
	case ring.Alloc, ring.Managed, ring.Array, ring.Free, ring.FreeFailed:
		return in.memory(r)
	case ring.Create, ring.Retain, ring.Release, ring.ReleaseFailed, ring.Map, ring.Unmap, ring.UnmapFailed:
		return in.virtual(r)
	case ring.PoolAlloc, ring.PoolSize, ring.PoolGone:
		return in.pooled(r)
	case ring.HostAlloc, ring.HostFree, ring.HostFreeFailed:
		return in.host(r)
	case ring.Context, ring.Primary, ring.ContextGone, ring.Grew:
		return in.context(r)
	case ring.OOM:
		in.oom = true
		return in.out.row(trace.Event{
			TimeNS: r.TimeNS, Op: trace.OpOOM, Size: clampSize(r.B), Addr: r.D, Device: max(r.Device, 0), Thread: r.Thread,
			Level: trace.LevelDriver,
		}, trace.DriverTag(kindOf(ring.Kind(r.A)), in.by(r)), "", in.stack(r))
	}
	return nil // of a newer preload library
}

// by names the library that asked.
func (in *interpreter) by(r *ring.Record) string {
	if lib := in.libraries.find(r.Caller); lib != nil {
		return lib.owner
	}
	return ""
}

// stack returns the folded stack of a record that has one.
func (in *interpreter) stack(r *ring.Record) string {
	if len(r.Extra) == 0 {
		return ""
	}
	return in.symbols.fold(r, &in.libraries)
}

// kindOf returns the kind of memory that a request of a kind asks for.
func kindOf(k ring.Kind) trace.Kind {
	switch k {
	case ring.Create, ring.Map:
		return trace.KindPhysical
	case ring.Managed:
		return trace.KindManaged
	case ring.PoolAlloc:
		return trace.KindPool
	case ring.HostAlloc:
		return trace.KindPinned
	}
	return trace.KindMemory
}

// clampSize returns a size that a trace may hold.
func clampSize(n uint64) int64 { return int64(min(n, trace.MaxSize)) }

// come writes the alloc of a block and gives it its id.
func (in *interpreter) come(r *ring.Record, b *block, addr uint64) error {
	in.lastID++
	b.id = in.lastID
	in.moved(b, +1)
	return in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpAlloc, ID: b.id, Size: b.size, Addr: addr, Device: max(b.device, 0), Stream: b.stream,
		Thread: r.Thread, Level: trace.LevelDriver,
	}, b.tag, in.poolName(b.pool), in.stack(r))
}

// leave writes the free of a block.
func (in *interpreter) leave(r *ring.Record, b *block, addr uint64) error {
	in.moved(b, -1)
	return in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpFree, ID: b.id, Size: b.size, Addr: addr, Device: max(b.device, 0), Stream: b.stream,
		Thread: r.Thread, Level: trace.LevelDriver,
	}, b.tag, in.poolName(b.pool), in.stack(r))
}

// moved counts what is obtained of a device.
func (in *interpreter) moved(b *block, sign int64) {
	if b.kind.Obtained() {
		in.count(b.device, sign*b.size)
	}
}

func (in *interpreter) count(ordinal int32, bytes int64) {
	d := in.devices[ordinal]
	d.traced += bytes
	in.devices[ordinal] = d
}

func (in *interpreter) poolName(handle uint64) string {
	if p := in.pools[handle]; p != nil {
		return p.name
	}
	return ""
}

func (in *interpreter) newBlock(r *ring.Record, kind trace.Kind) block {
	by := in.by(r)
	return block{size: max(clampSize(r.B), 1), device: r.Device, kind: kind, by: by, tag: in.tag(kind, by)}
}

// tag returns the tag of a kind of memory and who asked for it.
func (in *interpreter) tag(kind trace.Kind, by string) string {
	key := [2]string{string(kind), by}
	text, ok := in.tags[key]
	if !ok {
		text = trace.DriverTag(kind, by)
		in.tags[key] = text
	}
	return text
}
