package snapshot

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
)

// Join makes one trace of the snapshots of a process that were taken one after another, so often that the history in
// each reaches back to the one before. It is not safe for concurrent use.
//
// Segments, live blocks, marks and settings are those of the last snapshot.
type Join struct {
	// Fresh, unless nil, is called with each entry that no snapshot before had, once the snapshot is known to be
	// whole: device by device, each in order. Codes are those of the texts; IDs and the pools of most entries are not
	// known yet, and a free is told in two parts.
	Fresh func(trace.Event)

	rec   *recording
	tails map[int32]tail // of the last snapshot, by device
	err   error          // after which nothing can be added or written
}

// NewJoin returns a join of no snapshots, which adds the texts of stacks, tags and pools to texts. It must be closed.
func NewJoin(texts *column.Strings) *Join {
	return &Join{rec: newRecording(texts), tails: make(map[int32]tail)}
}

// Add reads the next snapshot; the name is for errors. One that is refused, as when it is cut off, leaves what was
// added before as it is.
func (j *Join) Add(in io.Reader, name string) error {
	if j.err != nil {
		return j.err
	}
	held := &pieces{room: &j.rec.room, tails: j.tails, devices: make(map[int32]*piece)}
	end, err := decode(in, j.rec, held)
	if err != nil {
		j.rec.tracked -= end.tracked
		return fmt.Errorf("%s: %w", name, errors.Join(err, held.close()))
	}
	if err := j.take(end, held); err != nil {
		j.err = fmt.Errorf("%s: %w", name, errors.Join(err, held.close()))
		return j.err
	}
	return held.close()
}

// take adds a whole snapshot to the recording.
func (j *Join) take(end last, held *pieces) error {
	if err := j.rec.finish(end); err != nil {
		return err
	}
	for device := range j.tails {
		if held.devices[device] == nil {
			j.rec.odd.emptied++
			delete(j.tails, device)
		}
	}
	for _, device := range slices.Sorted(maps.Keys(held.devices)) {
		p := held.devices[device]
		old, reaches := p.overlap()
		switch {
		case reaches:
		case p.tail.count < p.before.count: // a ring that was overrun is no shorter
			j.rec.odd.emptied++
		default:
			j.rec.odd.gaps++
		}
		if err := j.extend(device, p, old); err != nil {
			return err
		}
		j.tails[device] = p.tail
	}
	return nil
}

// extend adds the entries of a device but the first old ones.
func (j *Join) extend(device int32, p *piece, old int64) error {
	h, err := j.rec.historyOf(device)
	if err != nil {
		return err
	}
	c := cursor{spool: &p.spool}
	for n := int64(0); ; n++ {
		ok, err := c.next()
		if err != nil || !ok {
			return err
		}
		if n < old {
			continue
		}
		r := c.rec
		if last := h.spool.prev.time; r.time < last && last-r.time < clockError {
			r.time = last
		}
		if j.Fresh != nil && r.op != opUnknown {
			j.Fresh(trace.Event{
				TimeNS: max(r.time, h.spool.prev.time), Op: r.op, Size: r.size, Addr: r.addr, Device: device,
				Stream: r.stream, Pool: max(r.pool, 0), Stack: r.stack, Tag: r.tag,
			})
		}
		if err := j.rec.add(device, r); err != nil {
			return err
		}
	}
}

// Describe fills in what the snapshots say of the trace as a whole: alignment and settings.
func (j *Join) Describe(meta *trace.Meta) { j.rec.describe(meta) }

// Write writes the rows to out, as Import does those of one snapshot; warn is called with a line for each kind of
// oddity. Nothing can be added or written any more.
func (j *Join) Write(out Sink, warn func(string)) error {
	if j.err != nil {
		return j.err
	}
	j.err = errors.New("the trace is written already")
	return j.rec.write(out, warn)
}

// Close frees what the join holds.
func (j *Join) Close() error { return j.rec.close() }
