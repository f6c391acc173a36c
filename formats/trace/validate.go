package trace

import "fmt"

const (
	// MaxSize bounds the sizes of a trace, in bytes: the whole of a 47-bit address space.
	MaxSize = 1 << 47
	// MaxDevice is the highest ordinal of a GPU.
	MaxDevice = 1023
	// idSlack is how far ids may run ahead of twice the rows so far, so that the state of ids, a quarter of a byte
	// each, grows with the rows that were really read.
	idSlack = 1 << 20
)

// Validator checks the rules of a trace, batch by batch:
//
//   - times are not negative and never decrease;
//   - the id of an alloc is at least 1, more than that of the alloc before it, and at most the number of rows;
//   - free and free_requested are of an id that is live, free_completed of one whose free is requested, which a free
//     does at once; other rows have id 0;
//   - an alloc's size is 1 to MaxSize bytes, any other 0 to MaxSize;
//   - devices are 0 to MaxDevice, threads are not negative, ops and levels are those of this package.
//
// That the rows of a free repeat the size, address or stream of their alloc is not asked for. A trace may end with
// allocs still live. The zero Validator is ready for the first row of a trace.
type Validator struct {
	rows   int64
	time   int64
	lastID int64
	states []uint8 // two bits an id
}

// What has become of an id.
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

// Check checks the next rows. It fails at the first that breaks a rule, and names it, counted from the first batch.
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
		case OpFree, OpFreeRequested, OpFreeCompleted:
			want, next := steps[op].want, steps[op].next
			if id <= 0 || id > v.lastID || v.states[id>>2]>>(id&3*2)&3 != want {
				return v.explain(b, i)
			}
			v.states[id>>2] ^= (want ^ next) << (id & 3 * 2)
		default:
			if id != 0 {
				return v.explain(b, i)
			}
		}
		v.time = b.TimeNS[i]
		v.rows++
	}
	return nil
}

// steps are the states that the ops of a free want and leave.
var steps = [numOps]struct{ want, next uint8 }{
	OpFree:          {idLive, idFreed},
	OpFreeRequested: {idLive, idRequested},
	OpFreeCompleted: {idRequested, idFreed},
}

// plain checks the rules that need no more than the row itself and the time before it.
func (v *Validator) plain(b *Batch, i int) bool {
	return b.TimeNS[i] >= v.time &&
		uint8(b.Op[i]) < uint8(numOps) &&
		uint8(b.Level[i]) < uint8(numLevels) &&
		uint64(b.Size[i]) <= MaxSize &&
		uint32(b.Device[i]) <= MaxDevice &&
		b.Thread[i] >= 0
}

// explain returns the error for a row that was found to break a rule.
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
	case e.Op < 0 || e.Op >= numOps:
		return fmt.Sprintf("unknown op %d", e.Op)
	case e.Level < 0 || e.Level >= numLevels:
		return fmt.Sprintf("unknown level %d", e.Level)
	case e.Size < 0 || e.Size > MaxSize || e.Op == OpAlloc && e.Size == 0:
		return fmt.Sprintf("%s of %d bytes", e.Op, e.Size)
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

// Close checks the rules that need the whole trace.
func (v *Validator) Close() error {
	if v.lastID > v.rows {
		return fmt.Errorf("alloc with id %d in a trace of %d rows", v.lastID, v.rows)
	}
	return nil
}
