package importer

import (
	"errors"
	"fmt"
	"math"

	"gm/formats/trace"
)

const (
	plainTime = iota
	plainOp
	plainID
	plainSize
	plainAddr
	plainDevice
	plainStream
	plainPool
	plainThread
	plainStack
	plainTag
	plainLevel
	plainDerived
	plainCertainty
	plainRule
)

var plainColumns = []column{
	plainTime:   {names: []string{"time_ns"}, required: true},
	plainOp:     {names: []string{"op"}, required: true},
	plainID:     {names: []string{"id"}, required: true},
	plainSize:   {names: []string{"size"}, required: true},
	plainAddr:   {names: []string{"addr"}},
	plainDevice: {names: []string{"device"}},
	plainStream: {names: []string{"stream"}},
	plainPool:   {names: []string{"pool"}},
	plainThread: {names: []string{"thread"}},
	plainStack:  {names: []string{"stack"}},
	plainTag:    {names: []string{"tag"}},
	plainLevel:  {names: []string{"level"}},

	plainDerived:   {names: []string{"derived"}},
	plainCertainty: {names: []string{"certainty"}},
	plainRule:      {names: []string{"rule"}},
}

// plainCSV is the state of the import of a plain CSV.
type plainCSV struct {
	*table
	live map[string]plainAlloc // by id in the file
	last int64                 // time of the row before, ns
}

// plainAlloc is a live allocation.
type plainAlloc struct {
	id      int64 // in the trace
	pending bool  // its free is requested
}

func (t *text) plain() error {
	tab, err := t.table(plainColumns, nil)
	if err != nil {
		return err
	}
	t.out.out.Meta().Alignment = 1
	in := &plainCSV{table: tab, live: make(map[string]plainAlloc)}
	for err = tab.next(); err == nil; err = tab.next() {
		e, err := in.row()
		if err == nil {
			err = in.write(e)
		}
		if err != nil {
			return err
		}
	}
	return done(err)
}

func (in *plainCSV) row() (e trace.Event, err error) {
	if e.TimeNS, err = in.integer(plainTime, 0, trace.MaxTime); err != nil {
		return e, err
	}
	if e.TimeNS < in.last {
		return e, in.fail("time %d ns is before that of the row above, %d", e.TimeNS, in.last)
	}
	in.last = e.TimeNS
	if e.Op, err = trace.ParseOp(in.field(plainOp)); err != nil {
		return e, in.at(err)
	}
	switch level := in.field(plainLevel); level {
	case "", trace.LevelFramework.String():
	case trace.LevelDriver.String():
		e.Level = trace.LevelDriver
	default:
		return e, in.fail("level is %q, expected %v or %v", clip(level), trace.LevelFramework, trace.LevelDriver)
	}
	if in.field(plainSize) == "" {
		e.Size = 0 // unknown, as for a free
	} else if e.Size, err = in.integer(plainSize, 0, trace.MaxSize); err != nil {
		return e, err
	}
	if e.Addr, err = in.address(plainAddr); err != nil {
		return e, err
	}
	device, err := in.integer(plainDevice, 0, trace.MaxDevice)
	if err != nil {
		return e, err
	}
	thread, err := in.integer(plainThread, 0, math.MaxInt32)
	if err != nil {
		return e, err
	}
	e.Device, e.Thread = int32(device), int32(thread)
	if e.Stream, err = in.integer(plainStream, math.MinInt64, math.MaxInt64); err != nil {
		return e, err
	}
	e.Pool = in.out.text(in.field(plainPool))
	e.Stack = in.out.stack(in.field(plainStack))
	e.Tag = in.out.text(in.field(plainTag))
	e.Derived = in.derived()
	return e, nil
}

// derived returns the code of the tag that gm derived, as gmtrace export writes it; 0 if the tag is the recording's, or there is none.
func (in *plainCSV) derived() int32 {
	certainty := in.field(plainCertainty)
	if certainty != trace.Inferred && certainty != trace.Guess {
		return 0
	}
	d := trace.Derived{Tag: in.field(plainDerived), Certainty: certainty, Rule: in.field(plainRule)}
	return in.out.text(d.String())
}

// write writes a row after matching its id with the live allocations.
func (in *plainCSV) write(e trace.Event) error {
	id := in.field(plainID)
	if err := in.match(&e, id); err != nil {
		return in.fail("%v of id %q: %w", e.Op, clip(id), err)
	}
	if err := in.out.write(e); err != nil {
		return in.at(err)
	}
	return nil
}

// match sets the row's id.
func (in *plainCSV) match(e *trace.Event, id string) error {
	old, live := in.live[id]
	switch e.Op {
	case trace.OpAlloc:
		return in.alloc(e, id, live)
	case trace.OpFree, trace.OpFreeRequested:
		if !live {
			return errNotLive
		}
		if old.pending {
			return errors.New("its free is requested already")
		}
	case trace.OpFreeCompleted:
		if !live || !old.pending {
			return errors.New("its free is not requested")
		}
	default:
		if id != "" && id != "0" {
			return errors.New("expected none, or 0")
		}
		return nil
	}
	e.ID = old.id
	if e.Op == trace.OpFreeRequested {
		in.live[id] = plainAlloc{id: old.id, pending: true}
		return nil
	}
	delete(in.live, id)
	return nil
}

var errNotLive = errors.New("it is not live")

func (in *plainCSV) alloc(e *trace.Event, id string, live bool) error {
	switch {
	case id == "":
		return errors.New("an allocation needs an id")
	case live:
		return errors.New("it is live already")
	case e.Size == 0:
		return errors.New("0 bytes")
	case len(in.live) >= maxLive:
		return errTooManyLive
	case len(id) > maxID:
		return fmt.Errorf("longer than %d bytes", maxID)
	}
	in.out.id++
	e.ID = in.out.id
	in.live[id] = plainAlloc{id: e.ID}
	return nil
}

// maxID bounds the length of an id, in bytes.
const maxID = 256
