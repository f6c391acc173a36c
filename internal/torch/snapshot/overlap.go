package snapshot

import (
	"errors"
	"math"
	"time"

	"gm/formats/trace"
)

// clockError bounds, without reaching it, by how much the times of one entry differ from snapshot to snapshot, in ns:
// PyTorch calibrates its clock anew for each (ApproximateClockToUnixTimeConverter).
const clockError = int64(10 * time.Millisecond)

// pieces holds the entries of a snapshot until it is known to be whole.
type pieces struct {
	room    *int           // see spool
	tails   map[int32]tail // of the snapshot before, by device
	devices map[int32]*piece
}

// piece is the history of one device in a snapshot.
type piece struct {
	spool  spool
	before tail
	tail   tail

	old  int64   // entries that the snapshot before has too, if found
	cost float64 // of the best place at which they meet, infinite if there is none
	last float64 // of the last entry so far
}

// tail is how the history of a device in a snapshot ends.
type tail struct {
	count   int64 // entries of the whole history
	entries [tailLength]entry
}

// tailLength is how many entries are compared to find the end of one history in another.
const tailLength = 1024

// entry is an entry; all but its time is the same in all snapshots.
type entry struct {
	op   trace.Op
	addr uint64
	size int64
	time int64 // ns
}

func (p *pieces) add(device int32, r record) error {
	d := p.devices[device]
	if d == nil {
		d = newPiece(p.room, p.tails[device])
		p.devices[device] = d
	}
	return d.add(r)
}

func (p *pieces) close() error {
	var errs []error
	for _, d := range p.devices {
		errs = append(errs, d.spool.close())
	}
	return errors.Join(errs...)
}

func newPiece(room *int, before tail) *piece {
	return &piece{spool: spool{room: room}, before: before, cost: math.Inf(1), last: math.Inf(1)}
}

func (p *piece) add(r record) error {
	if r.op == trace.OpSnapshot {
		p.meet(p.last - unmarked)
	}
	e := entry{r.op, r.addr, r.size, r.time}
	p.tail.push(e)
	p.last = math.Inf(1)
	if p.before.count > 0 && e.same(p.before.at(1)) {
		p.last = p.tail.differ(&p.before)
		p.meet(p.last)
	}
	return p.spool.append(r)
}

// meet takes the last entry so far for that with which the snapshot before ended, if the cost is the least.
func (p *piece) meet(cost float64) {
	if cost < p.cost {
		p.old, p.cost = p.tail.count, cost
	}
}

// overlap returns how many of the first entries the snapshot before has too; false when its end is not found, so
// that there is a gap.
func (p *piece) overlap() (old int64, reaches bool) {
	return p.old, p.before.count == 0 || !math.IsInf(p.cost, 1)
}

func (t *tail) push(e entry) {
	t.entries[t.count%tailLength] = e
	t.count++
}

// at returns the entry that is i before the end, 1 being the last.
func (t *tail) at(i int64) *entry { return &t.entries[(t.count-i)%tailLength] }

// Added to the variance of the differences in time, in µs², of two tails that agree in all else.
const (
	unmarked  = 4   // no entry of a snapshot follows, as one does where the other snapshot was taken
	short     = 100 // there are so few entries to compare that they may agree by chance
	displaced = 0.1 // the times differ by clockError; less in proportion
)

// differ returns how little it is to be believed that two histories end at the same entry; infinity if they do not.
//
// Loops make the same entries over and over, but not at the same intervals. And the times of one snapshot are a linear
// function of those of another, near to the identity.
func (t *tail) differ(other *tail) float64 {
	n := min(t.count, other.count, tailLength)
	base := t.at(1).time - other.at(1).time
	sum, squares := 0.0, 0.0
	for i := int64(1); i <= n; i++ {
		a, b := t.at(i), other.at(i)
		shift := a.time - b.time
		if !a.same(b) || max(shift, -shift) >= clockError {
			return math.Inf(1)
		}
		us := float64(shift-base) / nsPerUs
		sum += us
		squares += us * us
	}
	mean := sum / float64(n)
	variance := squares/float64(n) - mean*mean
	span := float64(other.at(1).time-other.at(n).time) / nsPerUs
	if variance > square(5+span*1e-3) {
		return math.Inf(1)
	}
	cost := variance + unmarked + displaced*math.Abs(float64(base))/float64(clockError)
	if n < 16 && n < other.count {
		cost += short
	}
	return cost
}

func square(x float64) float64 { return x * x }

func (e *entry) same(other *entry) bool {
	return e.op == other.op && e.addr == other.addr && e.size == other.size
}
