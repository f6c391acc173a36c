package main

import (
	"fmt"
	"io"
	"slices"

	"gm/formats/plan"
	"gm/formats/trace"
)

// counter collects the columns of a summary.
type counter struct {
	integers map[string]uint64
	strings  map[string]map[string]bool
}

func newCounter() *counter {
	return &counter{integers: map[string]uint64{}, strings: map[string]map[string]bool{}}
}

func (c *counter) integer(column string, v int64) { c.integers[column] ^= uint64(v) }

func (c *counter) text(column, text string) {
	if c.strings[column] == nil {
		c.strings[column] = map[string]bool{}
	}
	c.strings[column][text] = true
}

// summary renders the counts. All columns but addr are signed.
func (c *counter) summary(rows, peak int64) *summary {
	s := &summary{Rows: rows, Peak: peak, Xor: map[string]string{}, Distinct: map[string]string{}}
	for column, v := range c.integers {
		s.Xor[column] = fmt.Sprint(int64(v))
		if column == "addr" {
			s.Xor[column] = fmt.Sprint(v)
		}
	}
	for column, texts := range c.strings {
		s.Distinct[column] = fmt.Sprint(len(texts))
	}
	return s
}

func summarizeTrace(name string) (*summary, error) {
	r, err := trace.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, tensors := newCounter(), newTensors()
	for {
		b, err := r.Next()
		if err == io.EOF {
			s := c.summary(r.Rows(), 0)
			tensors.describe(s)
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range b.Len() {
			e := b.Row(i)
			countEvent(c, r, &e)
			if e.Level == trace.LevelFramework {
				tensors.add(&e, r.Strings().Text(e.Stack))
			}
		}
	}
}

func countEvent(c *counter, r *trace.Reader, e *trace.Event) {
	c.integer("time_ns", e.TimeNS)
	c.text("op", e.Op.String())
	c.integer("id", e.ID)
	c.integer("size", e.Size)
	c.integer("addr", int64(e.Addr))
	c.integer("device", int64(e.Device))
	c.integer("stream", e.Stream)
	c.text("pool", r.Strings().Text(e.Pool))
	c.integer("thread", int64(e.Thread))
	c.text("level", e.Level.String())
	c.text("stack", r.Strings().Text(e.Stack))
	c.text("tag", r.Strings().Text(e.Tag))
}

func summarizePlan(name string) (*summary, error) {
	r, err := plan.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := newCounter()
	moves := map[int32][]move{} // by device
	for {
		b, err := r.Next()
		if err == io.EOF {
			s := c.summary(r.Rows(), 0)
			s.Devices = map[string]string{}
			for device, all := range moves {
				s.Devices[fmt.Sprint(device)] = fmt.Sprint(peakOf(all))
			}
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range b.Len() {
			t := b.Row(i)
			countTensor(c, r, &t)
			moves[t.Device] = append(moves[t.Device], move{t.Alloc, t.Size}, move{t.Free, -t.Size})
		}
	}
}

func countTensor(c *counter, r *plan.Reader, t *plan.Tensor) {
	c.integer("id", t.ID)
	c.integer("size", t.Size)
	c.integer("alloc", t.Alloc)
	c.integer("free", t.Free)
	c.integer("alloc_ns", t.AllocNS)
	c.integer("free_ns", t.FreeNS)
	c.integer("device", int64(t.Device))
	c.integer("stream", t.Stream)
	c.text("pool", r.Strings().Text(t.Pool))
	c.text("arena", r.Strings().Text(t.Arena))
	c.integer("offset", t.Offset)
}

// move is a change of the live bytes.
type move struct{ row, bytes int64 }

// peakOf returns the maximum of the live bytes.
func peakOf(moves []move) int64 {
	slices.SortFunc(moves, func(a, b move) int {
		if a.row != b.row {
			return int(a.row - b.row)
		}
		return int(a.bytes - b.bytes)
	})
	var live, peak int64
	for _, m := range moves {
		live += m.bytes
		peak = max(peak, live)
	}
	return peak
}
