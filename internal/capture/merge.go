package capture

import (
	"errors"
	"io"

	"gm/formats/column"
	"gm/formats/trace"
)

// merger writes a process's trace in order of time: it reads rows of the driver's level from a replay, and merges them with step marks and
// with the rows of the framework's level that are written to it. At equal times the driver's rows come first: memory is obtained before it
// is used.
type merger struct {
	out   *trace.Writer
	batch trace.Batch
	count int64 // rows
	last  int64 // time of the last row
	id    int64 // the last one assigned

	late   int64 // rows whose time was over a second before that of the row above
	latest int64 // by how much at most, in nanoseconds

	driver    source
	reader    *replay
	rows      *trace.Batch // of the driver's level
	at        int          // index of the next one
	framework source
	marks     []mark // still to write
	window    window // outside of which rows of the driver's level are left out
}

// lateBy is how far times may run backwards before that is reported, in nanoseconds.
const lateBy = 1_000_000_000

// source is one of the two inputs, with ids and text codes of its own.
type source struct {
	texts *column.Strings
	codes []int32         // codes of the trace, indexed by the source's
	ids   map[int64]int64 // ids of the trace, by the source's, of live blocks
}

// mark is a point in time that a traced program named.
type mark struct {
	timeNS int64
	text   string
}

func newMerger(out *trace.Writer, driver *replay, framework *column.Strings, w window, marks []mark) (*merger, error) {
	m := &merger{
		out: out, reader: driver, rows: &trace.Batch{}, marks: marks, window: w,
		driver:    source{texts: driver.rows.texts.strings, ids: map[int64]int64{}},
		framework: source{texts: framework, ids: map[int64]int64{}},
	}
	if err := m.fill(); err != nil {
		return nil, err
	}
	return m, m.enter()
}

// enter skips the driver's rows before the window, and writes the state at its beginning.
func (m *merger) enter() error {
	before := newEarly()
	for m.at < m.rows.Len() && m.rows.TimeNS[m.at] < m.window.fromNS {
		before.take(m.rows.Row(m.at))
		if err := m.next(); err != nil {
			return err
		}
	}
	if m.window.fromNS == endOfTime {
		return nil
	}
	for _, e := range before.rows() {
		e.TimeNS = m.window.fromNS
		if err := m.write(e, &m.driver); err != nil {
			return err
		}
	}
	return nil
}

// Write writes rows of the framework's level, each after the driver's rows and marks up to its time.
func (m *merger) Write(b *trace.Batch) error {
	for i := range b.Len() {
		e := b.Row(i)
		if err := m.upTo(m.notBefore(e)); err != nil {
			return err
		}
		if err := m.write(e, &m.framework); err != nil {
			return err
		}
	}
	return nil
}

// notBefore returns the time of a framework's row; for a segment, at least that of the driver's rows which gave its memory. The framework
// times its entries by another clock, and converts a counter of the processor to it: the two times may differ by more than lies between
// the two calls. The scan ends where memory in the segment's place is freed: what is given from there on is for a later segment. It does
// not go on to the driver's next batch.
func (m *merger) notBefore(e trace.Event) int64 {
	at := e.TimeNS
	if e.Op != trace.OpSegmentAlloc && e.Op != trace.OpSegmentMap {
		return at
	}
	end := e.Addr + uint64(e.Size)
	for i := m.at; i < m.rows.Len() && m.rows.TimeNS[i] <= e.TimeNS+int64(leastJump); i++ {
		if m.rows.Addr[i] < e.Addr || m.rows.Addr[i] >= end {
			continue
		}
		switch m.rows.Op[i] {
		case trace.OpAlloc, trace.OpSegmentMap:
			at = max(at, m.rows.TimeNS[i])
		case trace.OpFree, trace.OpFreeCompleted, trace.OpSegmentUnmap:
			return at
		}
	}
	return at
}

// close writes the remaining driver's rows and marks. It does not close the trace.
func (m *merger) close() error {
	if err := m.upTo(endOfTime); err != nil {
		return err
	}
	return m.flush()
}

// upTo writes the driver's rows and the marks up to a time.
func (m *merger) upTo(t int64) error {
	for {
		row := m.at < m.rows.Len() && m.rows.TimeNS[m.at] <= t
		mark := len(m.marks) > 0 && m.marks[0].timeNS <= t
		if row && mark {
			row = m.rows.TimeNS[m.at] <= m.marks[0].timeNS
		}
		var err error
		switch {
		case row:
			err = m.driverRow()
		case mark:
			err = m.markRow()
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (m *merger) markRow() error {
	next := m.marks[0]
	m.marks = m.marks[1:]
	return m.append(trace.Event{TimeNS: next.timeNS, Op: trace.OpMark, Tag: m.out.Strings().Code(next.text)})
}

func (m *merger) driverRow() error {
	if e := m.rows.Row(m.at); e.TimeNS <= m.window.toNS {
		if err := m.write(e, &m.driver); err != nil {
			return err
		}
	}
	return m.next()
}

// next advances to the driver's next row.
func (m *merger) next() error {
	if m.at++; m.at < m.rows.Len() {
		return nil
	}
	return m.fill()
}

// fill reads the driver's next batch.
func (m *merger) fill() error {
	m.at = 0
	rows, err := m.reader.next()
	if errors.Is(err, io.EOF) {
		m.rows = &trace.Batch{}
		return nil
	}
	m.rows = rows
	return err
}

// write writes a row of a source.
func (m *merger) write(e trace.Event, from *source) error {
	out := m.out.Strings()
	e.Tag, e.Pool, e.Stack = from.code(e.Tag, out), from.code(e.Pool, out), from.code(e.Stack, out)
	switch e.Op {
	case trace.OpAlloc:
		m.id++
		from.ids[e.ID] = m.id
		e.ID = m.id
	case trace.OpFreeRequested:
		e.ID = from.ids[e.ID]
	case trace.OpFree, trace.OpFreeCompleted:
		id := from.ids[e.ID]
		delete(from.ids, e.ID)
		e.ID = id
	}
	return m.append(e)
}

// code translates the source's code of a text to the trace's.
func (s *source) code(code int32, out *column.Strings) int32 {
	for int(code) >= len(s.codes) {
		s.codes = append(s.codes, out.Code(s.texts.Text(int32(len(s.codes)))))
	}
	return s.codes[code]
}

func (m *merger) append(e trace.Event) error {
	if before := m.last - e.TimeNS; before > lateBy {
		m.late++
		m.latest = max(m.latest, before)
	}
	e.TimeNS = max(e.TimeNS, m.last)
	m.last = e.TimeNS
	m.count++
	m.batch.Append(e)
	if m.batch.Len() < batchRows {
		return nil
	}
	return m.flush()
}

func (m *merger) flush() error {
	err := m.out.Write(&m.batch)
	m.batch.Reset()
	return err
}
