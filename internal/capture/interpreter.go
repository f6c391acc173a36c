package capture

import (
	"strings"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// interpreter turns the records of a process into rows of a trace. It tracks all live memory, so that every byte allocated is freed exactly
// once: physical memory when its last handle and its last mapping are gone, all memory of a context with the context.
type interpreter struct {
	out  rowWriter
	card cardReader

	libraries libraries
	symbols   *symbols
	devices   map[int32]device
	tags      map[[2]string]string
	unknown   map[string]int // functions used in a version that is not hooked, and how often each was looked up
	oom       bool           // a request was refused
	left      int            // records left out because maxLive was reached

	lastID   int64
	lastPool int
	blocks   map[uint64]block     // device memory by its address, or its handle for arrays
	pinned   map[uint64]block     // host memory by its address
	physical map[uint64]*physical // by handle
	mapped   map[uint64]mapping   // by address
	pools    map[uint64]*pool     // by handle
	contexts map[uint64][]block   // by handle: the context's own memory, and how it grew
	primary  map[int32]uint64     // primary contexts by device
	made     map[uint64]bool      // contexts whose creation was recorded

	inContexts int // blocks in contexts

	// What each thread's last call was about to free, release or unmap, by thread. A record that follows may say that the call failed.
	freed    map[int32]freed
	released map[int32]*physical
	unmapped map[int32][]unmapped
}

// rowWriter takes the rows of the driver's level. The texts are the tag, the pool's name and the folded stack.
type rowWriter interface {
	row(e trace.Event, tag, pool, stack string)
}

// cardReader asks NVML what the driver does not report.
type cardReader interface {
	// contextSize returns the size of a new context in bytes, 0 if it is unknown. began is when its creation began (ring.Monotonic), traced
	// the bytes of the device that the process had then, used the bytes of the device in use by all just after.
	contextSize(uuid [16]byte, began uint64, used, traced int64) int64
}

// device is a GPU as a process sees it.
type device struct {
	uuid   [16]byte
	name   string
	total  int64
	traced int64 // bytes that the process obtained from the driver and has not freed
}

// block is live memory.
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
	held   int64 // bytes of the device that it holds
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

// kindSample is a record made by gmtrace itself: NVML's figure for a device. A is sampleCard or sampleProcess, B the bytes in use.
const kindSample ring.Kind = 255

const (
	sampleCard = iota
	sampleProcess
)

// Bounds of the state kept for a process, whatever its records contain.
const (
	maxLive    = 1 << 22 // live blocks, handles and mappings
	maxThreads = 1 << 16 // threads whose last call may still fail
	maxUnknown = 100     // versions of functions
	maxName    = 128     // bytes of the name of a device or a function
)

// take interprets the next record.
func (in *interpreter) take(r *ring.Record) {
	r.Device, r.Thread = min(max(r.Device, -1), trace.MaxDevice), max(r.Thread, 0)
	if comes(r.Kind) && in.living() >= maxLive {
		in.left++
		return
	}
	switch r.Kind {
	case ring.Library:
		in.libraries.add(library{from: r.A, to: r.B, offset: r.C, path: r.Text()})
	case ring.Device:
		in.devices[r.Device] = device{
			uuid: r.UUID(), name: name(r), total: known(r.C),
			traced: in.devices[r.Device].traced, // another thread's records may have come first
		}
	case ring.Unknown:
		if len(in.unknown) < maxUnknown {
			in.unknown[name(r)]++
		}
	case ring.Alloc, ring.Managed, ring.Array, ring.Free, ring.FreeFailed:
		in.memory(r)
	case ring.Create, ring.Retain, ring.Release, ring.ReleaseFailed, ring.Map, ring.Unmap, ring.UnmapFailed:
		in.virtual(r)
	case ring.PoolAlloc, ring.PoolSize, ring.PoolGone:
		in.pooled(r)
	case ring.HostAlloc, ring.HostFree, ring.HostFreeFailed:
		in.host(r)
	case ring.Context, ring.Primary, ring.ContextGone, ring.Grew:
		in.context(r)
	case ring.OOM:
		in.refused(r)
	case kindSample:
		kind := trace.KindCard
		if r.A == sampleProcess {
			kind = trace.KindProcess
		}
		e := trace.Event{TimeNS: r.TimeNS, Op: trace.OpSample, Size: clampSize(r.B), Device: max(r.Device, 0), Level: trace.LevelDriver}
		in.out.row(e, string(kind), "", "")
	}
}

// comes reports whether a record adds something to what lives.
func comes(k ring.Kind) bool {
	switch k {
	case ring.Alloc, ring.Managed, ring.Array, ring.Create, ring.Map, ring.PoolAlloc, ring.PoolSize, ring.HostAlloc, ring.Context, ring.Primary, ring.Grew:
		return true
	}
	return false
}

// living returns the number of live things.
func (in *interpreter) living() int {
	return len(in.blocks) + len(in.pinned) + len(in.physical) + len(in.mapped) + len(in.pools) + in.inContexts
}

// name returns the text of a record, cut to maxName bytes.
func name(r *ring.Record) string {
	text := r.Text()
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxName)], "?"))
}

// remember notes what a thread's last call was about to take away.
func remember[T any](last map[int32]T, thread int32, what T) {
	if len(last) >= maxThreads {
		clear(last) // if one of their calls failed, that is missed
	}
	last[thread] = what
}

// refused interprets a request that failed.
func (in *interpreter) refused(r *ring.Record) {
	in.oom = true
	in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpOOM, Size: clampSize(r.B), Addr: r.D, Device: max(r.Device, 0), Thread: r.Thread,
		Level: trace.LevelDriver,
	}, trace.DriverTag(kindOf(ring.Kind(r.A)), in.by(r)), "", in.stack(r))
}

// by returns the name of the library that made the call.
func (in *interpreter) by(r *ring.Record) string {
	if lib := in.libraries.find(r.Caller); lib != nil {
		return lib.owner
	}
	return ""
}

// stack returns the folded stack of a record, "" if it has none.
func (in *interpreter) stack(r *ring.Record) string {
	if len(r.Extra) == 0 {
		return ""
	}
	return in.symbols.fold(r, &in.libraries)
}

// kindOf returns the kind of memory that a request is for.
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

// clampSize limits a size to what a trace may hold.
func clampSize(n uint64) int64 { return int64(min(n, trace.MaxSize)) }

// known is n bytes, or 0 (unknown) if that is more than a trace may hold: the record is damaged.
func known(n uint64) int64 {
	if n > trace.MaxSize {
		return 0
	}
	return int64(n)
}

// come writes the alloc row of a block and assigns its id.
func (in *interpreter) come(r *ring.Record, b *block, addr uint64) {
	in.lastID++
	b.id = in.lastID
	in.moved(b, +1)
	in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpAlloc, ID: b.id, Size: b.size, Addr: addr, Device: max(b.device, 0), Stream: b.stream,
		Thread: r.Thread, Level: trace.LevelDriver,
	}, b.tag, in.poolName(b.pool), in.stack(r))
}

// leave writes the free row of a block.
func (in *interpreter) leave(r *ring.Record, b *block, addr uint64) {
	in.moved(b, -1)
	in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpFree, ID: b.id, Size: b.size, Addr: addr, Device: max(b.device, 0), Stream: b.stream,
		Thread: r.Thread, Level: trace.LevelDriver,
	}, b.tag, in.poolName(b.pool), in.stack(r))
}

// moved counts memory obtained from a device, or returned to it.
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

// tag returns the tag for a kind of memory and the library that requested it.
func (in *interpreter) tag(kind trace.Kind, by string) string {
	key := [2]string{string(kind), by}
	text, ok := in.tags[key]
	if !ok {
		text = trace.DriverTag(kind, by)
		in.tags[key] = text
	}
	return text
}
