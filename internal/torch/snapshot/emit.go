package snapshot

import (
	"cmp"
	"maps"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
)

const batchRows = 16 << 10

// emitter is the state of the second pass.
type emitter struct {
	out   Sink
	texts *column.Strings
	batch trace.Batch
	odd   *oddities
	marks []mark // still to come
	id    int64  // the last one given
	early int32  // code of trace.TagPreexisting
}

// device is what the second pass knows of a device.
type device struct {
	*history
	cursor cursor
	event  int64 // number of the event that the cursor is at
	live   []liveBlock
}

// liveBlock is what was last allocated in a slot; id 0 when that is freed.
type liveBlock struct {
	id      int64
	size    int64
	stream  int64
	pool    int32
	pending bool
}

// emit writes the rows of a recording.
func (r *recording) emit(out Sink) error {
	slices.SortStableFunc(r.marks, func(a, b mark) int { return cmp.Compare(a.time, b.time) })
	e := &emitter{out: out, texts: r.texts, odd: &r.odd, marks: r.marks}
	var devices []*device
	for _, number := range slices.Sorted(maps.Keys(r.devices)) {
		h := r.devices[number]
		devices = append(devices, &device{history: h, cursor: cursor{spool: &h.spool}, live: make([]liveBlock, len(h.addrs))})
	}
	if err := e.initial(devices); err != nil {
		return err
	}
	if err := e.merge(devices); err != nil {
		return err
	}
	return e.flush()
}

// initial writes what is older than the history, at the time of its first event.
func (e *emitter) initial(devices []*device) error {
	start, err := e.start(devices)
	if err != nil {
		return err
	}
	for _, d := range devices {
		in := d.history.initial(e.odd)
		d.slots, d.early, d.earlySegs, d.mappings = nil, nil, nil, nil
		if len(in.spans)+len(in.blocks) > 0 {
			e.early = e.texts.Code(trace.PreexistingTag(0))
		}
		for _, s := range in.spans {
			err := e.row(trace.Event{
				TimeNS: start, Op: s.op(), Size: int64(s.size), Addr: s.addr, Device: d.device, Stream: s.stream,
				Pool: max(s.pool, 0), Tag: e.early,
			})
			if err != nil {
				return err
			}
		}
		for _, b := range in.blocks {
			if err := e.initialBlock(d, &b, start); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *emitter) initialBlock(d *device, b *earlyBlock, start int64) error {
	e.id++
	row := trace.Event{
		TimeNS: start, Op: trace.OpAlloc, ID: e.id, Size: b.size, Addr: b.addr, Device: d.device, Stream: b.stream,
		Pool: b.pool, Stack: b.stack, Tag: e.early,
	}
	if b.block > 0 {
		row.Tag = e.texts.Code(trace.PreexistingTag(b.block))
	}
	if b.slot >= 0 {
		d.live[b.slot] = liveBlock{id: e.id, size: b.size, stream: b.stream, pool: b.pool, pending: b.pending}
	}
	if err := e.row(row); err != nil || !b.pending {
		return err
	}
	row.Op = trace.OpFreeRequested
	return e.row(row)
}

// start returns the time of the first event or mark.
func (e *emitter) start(devices []*device) (int64, error) {
	start, known := int64(0), false
	if len(e.marks) > 0 {
		start, known = e.marks[0].time, true
	}
	for _, d := range devices {
		t, ok, err := d.first()
		if err != nil {
			return 0, err
		}
		if ok && (!known || t < start) {
			start, known = t, true
		}
	}
	return start, nil
}

// merge writes the events of all devices, and the marks, in the order of time.
func (e *emitter) merge(devices []*device) error {
	q := queue{}
	for _, d := range devices {
		ok, err := d.cursor.next()
		if err != nil {
			return err
		}
		if ok {
			q = append(q, d)
		}
	}
	q.order()
	for len(q) > 0 {
		d := q[0]
		if err := e.marksUpTo(d.cursor.rec.time); err != nil {
			return err
		}
		if err := e.event(d, &d.cursor.rec); err != nil {
			return err
		}
		d.event++
		ok, err := d.cursor.next()
		if err != nil {
			return err
		}
		if !ok {
			q[0] = q[len(q)-1]
			q = q[:len(q)-1]
		}
		q.sink(0)
	}
	if n := len(e.marks); n > 0 {
		return e.marksUpTo(e.marks[n-1].time)
	}
	return nil
}

func (e *emitter) marksUpTo(t int64) error {
	for len(e.marks) > 0 && e.marks[0].time <= t {
		m := e.marks[0]
		e.marks = e.marks[1:]
		if err := e.row(trace.Event{TimeNS: m.time, Op: trace.OpMark, Device: m.device, Tag: m.tag}); err != nil {
			return err
		}
	}
	return nil
}

// row writes one row.
func (e *emitter) row(row trace.Event) error {
	e.batch.Append(row)
	if e.batch.Len() < batchRows {
		return nil
	}
	return e.flush()
}

func (e *emitter) flush() error {
	err := e.out.Write(&e.batch)
	e.batch.Reset()
	return err
}

// queue is a heap of devices by the time of the event that each is at, then by number.
type queue []*device

func (q queue) before(i, j int) bool {
	a, b := q[i].cursor.rec.time, q[j].cursor.rec.time
	return a < b || a == b && q[i].device < q[j].device
}

func (q queue) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

func (q queue) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if child+1 < len(q) && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}
