package capture

import (
	"strings"

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
	left      int            // records of memory that were left out, since so much lives

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

	inContexts int // blocks in contexts

	// What each thread's last call was about to take away, by thread.
	freed    map[int32]freed
	released map[int32]*physical
	unmapped map[int32][]unmapped
}

// rowWriter takes the rows of the driver's level. The texts are the tag, the pool's name and the folded stack.
type rowWriter interface {
	row(e trace.Event, tag, pool, stack string)
}

// cardReader knows what NVML says, for what the driver does not.
type cardReader interface {
	// contextSize returns the bytes that a new context took, 0 when they cannot be told: it was begun at a time (ring.Monotonic), when the process had
	// traced bytes of the device, and just after it was made, used bytes of the device were in use.
	contextSize(uuid [16]byte, began uint64, used, traced int64) int64
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

// kindSample is a record that this process makes: what NVML said of a device. A is sampleCard or sampleProcess, B the bytes used.
const kindSample ring.Kind = 255

const (
	sampleCard = iota
	sampleProcess
)

// Bounds of what is kept of a process, whatever its records say.
const (
	maxLive    = 1 << 22 // blocks, handles and mappings that live at a time
	maxThreads = 1 << 16 // whose last calls may still fail
	maxUnknown = 100     // versions of functions
	maxName    = 128     // bytes of the name of a device or a function
)

// take takes in the next record.
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
			uuid: r.UUID(), name: name(r), total: max(int64(r.C), 0),
			traced: in.devices[r.Device].traced, // another thread may have been faster
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

// comes tells whether a record is of something that lives from then on.
func comes(k ring.Kind) bool {
	switch k {
	case ring.Alloc, ring.Managed, ring.Array, ring.Create, ring.Map, ring.PoolAlloc, ring.PoolSize, ring.HostAlloc, ring.Context, ring.Primary, ring.Grew:
		return true
	}
	return false
}

// living returns how many things live.
func (in *interpreter) living() int {
	return len(in.blocks) + len(in.pinned) + len(in.physical) + len(in.mapped) + len(in.pools) + in.inContexts
}

// name returns the text of a record, as long as a name is.
func name(r *ring.Record) string {
	text := r.Text()
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxName)], "?"))
}

// remember puts what a thread's last call was about to take away into a map by thread.
func remember[T any](last map[int32]T, thread int32, what T) {
	if len(last) >= maxThreads {
		clear(last) // a call of theirs that fails is missed
	}
	last[thread] = what
}

// refused takes in a request that failed.
func (in *interpreter) refused(r *ring.Record) {
	in.oom = true
	in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpOOM, Size: clampSize(r.B), Addr: r.D, Device: max(r.Device, 0), Thread: r.Thread,
		Level: trace.LevelDriver,
	}, trace.DriverTag(kindOf(ring.Kind(r.A)), in.by(r)), "", in.stack(r))
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
func (in *interpreter) come(r *ring.Record, b *block, addr uint64) {
	in.lastID++
	b.id = in.lastID
	in.moved(b, +1)
	in.out.row(trace.Event{
		TimeNS: r.TimeNS, Op: trace.OpAlloc, ID: b.id, Size: b.size, Addr: addr, Device: max(b.device, 0), Stream: b.stream,
		Thread: r.Thread, Level: trace.LevelDriver,
	}, b.tag, in.poolName(b.pool), in.stack(r))
}

// leave writes the free of a block.
func (in *interpreter) leave(r *ring.Record, b *block, addr uint64) {
	in.moved(b, -1)
	in.out.row(trace.Event{
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
