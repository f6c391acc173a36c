package exporter

import (
	"fmt"

	"gm/formats/column"
	"gm/formats/tensors"
	"gm/formats/trace"
	"gm/internal/trace/tags"
)

// tensorTable writes a table of the allocations of a trace.
type tensorTable struct {
	*export
	survey *survey
	labels *tags.Tags
	ends   []end // by id
	out    *tensors.Writer
	batch  tensors.Batch
	codes  map[int32]int32 // of the table, by code of the trace
}

// end is where the lifetime of an allocation ends; row 0 if nowhere.
type end struct{ row, timeNS int64 }

// maxTensors is the most allocations of a table. Each takes 16 bytes of memory.
const maxTensors = 1 << 26

// batchRows is how many rows are written at once.
const batchRows = 1 << 13

// tensors writes one row for each allocation.
func (x *export) tensors() error {
	s, err := x.survey()
	if err != nil {
		return err
	}
	labels, err := x.labels()
	if err != nil {
		return err
	}
	t := &tensorTable{export: x, survey: s, labels: labels, codes: map[int32]int32{}}
	if err := t.findEnds(); err != nil {
		return err
	}
	t.out = tensors.NewWriter(x.out, tensors.Meta{Rows: s.rows, Source: s.meta.Source, Devices: s.meta.Devices, Capacity: s.meta.Capacity})
	err = x.each(func(r *trace.Reader, row int64, e *trace.Event) error {
		if e.Op != trace.OpAlloc || !s.exported(e) || e.Level == trace.LevelDriver && !onDevice(r, e) {
			return nil
		}
		t.batch.Append(t.tensor(r.Strings(), row, e))
		if t.batch.Len() < batchRows {
			return nil
		}
		return t.flush()
	})
	if err == nil {
		err = t.flush()
	}
	if err != nil {
		return err
	}
	return t.out.Close()
}

// findEnds reads the trace once and finds the ends of all lifetimes.
func (t *tensorTable) findEnds() error {
	return t.each(func(r *trace.Reader, row int64, e *trace.Event) error {
		switch e.Op {
		case trace.OpAlloc:
			if e.ID >= maxTensors {
				return r.Wrap(fmt.Errorf("row %d: a table has at most %d allocations", row, maxTensors))
			}
			t.ends = append(t.ends, make([]end, e.ID+1-int64(len(t.ends)))...)
		case trace.OpFree, trace.OpFreeCompleted:
			t.ends[e.ID] = end{row, e.TimeNS}
		}
		return nil
	})
}

// tensor returns the row of an allocation.
func (t *tensorTable) tensor(texts *column.Strings, row int64, e *trace.Event) tensors.Tensor {
	last := t.ends[e.ID]
	if last.row == 0 {
		last = end{t.survey.rows, t.survey.end}
	}
	code := t.out.Strings().Code
	label := labelOf(t.labels, texts, e)
	return tensors.Tensor{
		ID: e.ID, Size: e.Size, Alloc: row, Free: last.row, AllocNS: e.TimeNS, FreeNS: last.timeNS, Device: e.Device, Stream: e.Stream,
		Level: code(e.Level.String()), Pool: t.code(texts, e.Pool), Tag: code(label.Tag), Certainty: code(string(label.Certainty)),
		Rule: code(label.Rule), Stack: t.code(texts, e.Stack),
	}
}

// code returns the table's code of a text of the trace.
func (t *tensorTable) code(texts *column.Strings, of int32) int32 {
	code, known := t.codes[of]
	if !known {
		code = t.out.Strings().Code(texts.Text(of))
		t.codes[of] = code
	}
	return code
}

func (t *tensorTable) flush() error {
	err := t.out.Write(&t.batch)
	t.batch.Reset()
	return err
}
