package trace

import (
	"fmt"
	"math"
)

const (
	// MaxSize is the largest size in a trace, in bytes: the whole of a 47-bit address space.
	MaxSize = 1 << 47
	// MaxTime bounds times, in ns since the Unix epoch, so that no difference of two overflows: the year 2116.
	MaxTime = 1 << 62
	// MaxDevice is the highest ordinal of a GPU.
	MaxDevice = 1023
	// MaxTotal bounds the sum of the sizes of all rows of allocations and segments, in bytes, so that neither a sum of
	// them nor its double overflows.
	MaxTotal = 1 << 61
	// MaxLive is how many allocations may be live at a time in a trace that is read. It bounds the memory of programs that
	// keep state for each. It does not apply to writing.
	MaxLive = 1 << 22
	// MaxAlignment is the largest alignment that a trace may state, in bytes.
	MaxAlignment = 1 << 40
	// idSlack is how far ids may exceed twice the rows read so far. It makes the memory for the states of ids, two bits
	// each, grow with the rows that were read.
	idSlack = 1 << 20
)

// Validator checks the rules of a trace, batch by batch:
//
//   - times are 0 to MaxTime and never decrease;
//   - the id of an alloc is at least 1, more than that of the alloc before it, and at most the number of rows;
//   - free and free_requested name an id that is live, free_completed one whose free is requested; a free does both
//     steps at once; other rows have id 0;
//   - an alloc's size is 1 to MaxSize bytes, any other 0 to MaxSize; the sizes of all rows of allocations and segments
//     add up to at most MaxTotal;
//   - no address plus its size exceeds 2^64; the address of an oom row, which holds the free bytes, is at most MaxTotal;
//   - the alignment in the metadata is 0 to MaxAlignment, the capacity 0 to MaxTotal;
//   - devices are 0 to MaxDevice, threads are not negative, ops and levels are those of this package.
//
// The rows of a free need not repeat the size, address or stream of their alloc. A trace may end with allocs still
// live. The zero Validator is ready for the first row of a trace.
type Validator struct {
	rows    int64
	time    int64
	lastID  int64
	total   int64
	live    int     // allocations
	maxLive int     // 0 for no bound
	meta    *Meta   // nil if there is none to check
	states  []uint8 // two bits an id
}

// check checks the metadata.
func (m *Meta) check() error {
	switch {
	case m.Alignment < 0 || m.Alignment > MaxAlignment:
		return fmt.Errorf("alignment of %d bytes", m.Alignment)
	case m.Capacity < 0 || m.Capacity > MaxTotal:
		return fmt.Errorf("capacity of %d bytes", m.Capacity)
	}
	return nil
}

// The states of an id.
const (
	idUnknown = iota
	idLive
	idRequested
	idFreed
)

var idStates = [...]string{
	idUnknown:   "was never allocated",
	idLive:      "is live",
	idRequested: "has its free requested already",
	idFreed:     "is freed already",
}

// Check checks the next rows. Its error names the first row that breaks a rule, counted from the first batch.
func (v *Validator) Check(b *Batch) error {
	for i := range b.TimeNS {
		if !v.plain(b, i) {
			return v.explain(b, i)
		}
		id, op := b.ID[i], b.Op[i]
		switch op {
		case OpAlloc:
			if id <= v.lastID || id > 2*v.rows+idSlack || b.Size[i] == 0 {
				return v.explain(b, i)
			}
			v.lastID = id
			if int(id>>2) >= len(v.states) {
				v.states = append(v.states, make([]uint8, int(id>>2)+1-len(v.states)+len(v.states)/2)...)
			}
			v.states[id>>2] |= idLive << (id & 3 * 2)
			if v.live++; v.live > v.maxLive && v.maxLive > 0 {
				return fmt.Errorf("row %d: more than %d allocations are live at once, the most that can be read", v.rows, v.maxLive)
			}
		case OpFree, OpFreeRequested, OpFreeCompleted:
			want, next := steps[op].want, steps[op].next
			if id <= 0 || id > v.lastID || v.states[id>>2]>>(id&3*2)&3 != want {
				return v.explain(b, i)
			}
			v.states[id>>2] ^= (want ^ next) << (id & 3 * 2)
			if next == idFreed {
				v.live--
			}
		default:
			if id != 0 {
				return v.explain(b, i)
			}
		}
		v.time = b.TimeNS[i]
		if op <= OpSegmentUnmap {
			v.total += b.Size[i]
		}
		v.rows++
	}
	return nil
}

// steps are the states that the ops of a free require and lead to.
var steps = [numOps]struct{ want, next uint8 }{
	OpFree:          {idLive, idFreed},
	OpFreeRequested: {idLive, idRequested},
	OpFreeCompleted: {idRequested, idFreed},
}

// maxAddr returns the highest address that a row may have.
func (v *Validator) maxAddr(b *Batch, i int) uint64 {
	if b.Op[i] == OpOOM {
		return MaxTotal
	}
	return math.MaxUint64 - uint64(b.Size[i])
}

// plain checks the rules that concern only the row itself and the time of the row before it.
func (v *Validator) plain(b *Batch, i int) bool {
	return b.TimeNS[i] >= v.time && b.TimeNS[i] <= MaxTime &&
		uint8(b.Op[i]) < uint8(numOps) &&
		uint8(b.Level[i]) < uint8(numLevels) &&
		uint64(b.Size[i]) <= uint64(min(MaxSize, MaxTotal-v.total)) &&
		b.Addr[i] <= v.maxAddr(b, i) &&
		uint32(b.Device[i]) <= MaxDevice &&
		b.Thread[i] >= 0
}

// explain returns the error for a row that breaks a rule.
func (v *Validator) explain(b *Batch, i int) error {
	e := b.Row(i)
	return fmt.Errorf("row %d: %s", v.rows, v.reason(&e))
}

func (v *Validator) reason(e *Event) string {
	switch {
	case e.TimeNS < 0:
		return fmt.Sprintf("time %d ns is negative", e.TimeNS)
	case e.TimeNS < v.time:
		return fmt.Sprintf("time %d ns is before that of the row above, %d", e.TimeNS, v.time)
	case e.TimeNS > MaxTime:
		return fmt.Sprintf("time %d ns, expected at most %d", e.TimeNS, int64(MaxTime))
	case e.Op < 0 || e.Op >= numOps:
		return fmt.Sprintf("unknown op %d", e.Op)
	case e.Level < 0 || e.Level >= numLevels:
		return fmt.Sprintf("unknown level %d", e.Level)
	case e.Size < 0 || e.Size > MaxSize || e.Op == OpAlloc && e.Size == 0:
		return fmt.Sprintf("%s of %d bytes", e.Op, e.Size)
	case e.Size > MaxTotal-v.total:
		return fmt.Sprintf("the sizes of the rows add up to more than %d bytes", int64(MaxTotal))
	case e.Op == OpOOM && e.Addr > MaxTotal:
		return fmt.Sprintf("%s with %d bytes free", e.Op, e.Addr)
	case e.Op != OpOOM && e.Addr > math.MaxUint64-uint64(e.Size):
		return fmt.Sprintf("%s of %d bytes at %#x reaches beyond the last address", e.Op, e.Size, e.Addr)
	case e.Device < 0 || e.Device > MaxDevice:
		return fmt.Sprintf("device %d, expected 0 to %d", e.Device, MaxDevice)
	case e.Thread < 0:
		return fmt.Sprintf("thread %d is negative", e.Thread)
	}
	switch e.Op {
	case OpAlloc:
		return v.reasonAlloc(e.ID)
	case OpFree, OpFreeRequested:
		return fmt.Sprintf("%s of id %d, which is not live: it %s", e.Op, e.ID, idStates[v.state(e.ID)])
	case OpFreeCompleted:
		return fmt.Sprintf("%s of id %d, whose free is not requested: it %s", e.Op, e.ID, idStates[v.state(e.ID)])
	}
	return fmt.Sprintf("%s has id %d, expected 0", e.Op, e.ID)
}

func (v *Validator) reasonAlloc(id int64) string {
	switch {
	case id < 1:
		return fmt.Sprintf("alloc has id %d, expected 1 or more", id)
	case id <= v.lastID:
		return fmt.Sprintf("alloc has id %d, expected more than the %d of the alloc before", id, v.lastID)
	}
	return fmt.Sprintf("alloc has id %d, more than a trace can have rows", id)
}

func (v *Validator) state(id int64) uint8 {
	if id < 1 || id > v.lastID {
		return idUnknown
	}
	return v.states[id>>2] >> (id & 3 * 2) & 3
}

// Close checks the rules that depend on the whole trace.
func (v *Validator) Close() error {
	switch {
	case v.lastID > v.rows:
		return fmt.Errorf("alloc with id %d in a trace of %d rows", v.lastID, v.rows)
	case v.meta != nil:
		if err := v.meta.check(); err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
	}
	return nil
}
