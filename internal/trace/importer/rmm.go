package importer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gm/formats/trace"
)

// rmmAlignment is the alignment of RMM's allocations, in bytes (CUDA_ALLOCATION_ALIGNMENT in rmm/aligned.hpp).
const rmmAlignment = 256

// The columns of a log, in order.
const (
	rmmThread = iota
	rmmTime
	rmmAction
	rmmPointer
	rmmSize
	rmmStream
)

var rmmColumns = []column{
	rmmThread:  {names: []string{"thread"}, required: true},
	rmmTime:    {names: []string{"time"}, required: true},
	rmmAction:  {names: []string{"action"}, required: true},
	rmmPointer: {names: []string{"pointer"}, required: true},
	rmmSize:    {names: []string{"size"}, required: true},
	rmmStream:  {names: []string{"stream"}},
}

type rmmEvent int

const (
	rmmUnknown rmmEvent = iota
	rmmAllocate
	rmmFree
	rmmFailure
)

var rmmActions = map[string]rmmEvent{
	"allocate":         rmmAllocate,
	"free":             rmmFree,
	"deallocate":       rmmFree,
	"allocate failure": rmmFailure,
}

// rmmLog is the state of the import of a log.
type rmmLog struct {
	*table
	clock   clock
	blocks  *blocks
	threads map[uint64]int32 // numbers given to threads whose ids do not fit into a row
}

func (t *text) rmm() error {
	t.out.out.Meta().Alignment = rmmAlignment
	tab, err := t.table(rmmColumns, isRMM)
	if err != nil {
		return err
	}
	log := &rmmLog{table: tab, blocks: newBlocks(t.out), threads: make(map[uint64]int32)}
	for err = tab.next(); err == nil; err = tab.next() {
		if err := log.row(); err != nil {
			return err
		}
	}
	return done(err)
}

// isRMM reports whether a line is a row of a log, rather than its header.
func isRMM(fields []string) bool {
	return len(fields) == len(rmmColumns) && rmmActions[fields[rmmAction]] != rmmUnknown
}

func (l *rmmLog) row() error {
	var e trace.Event
	ns, err := l.clock.parse(l.field(rmmTime))
	if err != nil {
		return l.fail("time %w", err)
	}
	e.TimeNS = ns
	if e.Addr, err = l.pointer(rmmPointer); err != nil {
		return err
	}
	if e.Size, err = l.integer(rmmSize, 0, trace.MaxSize); err != nil {
		return err
	}
	stream, err := l.pointer(rmmStream)
	if err != nil {
		return err
	}
	e.Stream = int64(stream)
	if e.Thread, err = l.thread(); err != nil {
		return err
	}
	switch action := l.field(rmmAction); rmmActions[action] {
	case rmmAllocate:
		err = l.blocks.alloc(e)
	case rmmFree:
		err = l.blocks.free(e)
	case rmmFailure:
		e.Op, e.Addr = trace.OpOOM, 0
		err = l.out.write(e)
	default:
		return l.fail("unknown action %q", clip(action))
	}
	if err != nil {
		return l.at(err)
	}
	return nil
}

// pointer parses the output of printf's %p, which writes a null pointer as "(nil)".
func (l *rmmLog) pointer(c int) (uint64, error) {
	if l.field(c) == "(nil)" {
		return 0, nil
	}
	return l.address(c)
}

// maxThreads bounds the threads that are renumbered.
const maxThreads = 1 << 16

// thread returns the thread's id. If that is a pthread_t, which does not fit into a row, threads are numbered in the
// order in which they appear.
func (l *rmmLog) thread() (int32, error) {
	id, err := l.address(rmmThread)
	if err != nil {
		return 0, err
	}
	if id <= math.MaxInt32 {
		return int32(id), nil
	}
	n, ok := l.threads[id]
	if !ok && len(l.threads) < maxThreads {
		n = int32(len(l.threads) + 1)
		l.threads[id] = n
	}
	return n, nil
}

// clock parses times of day.
type clock struct {
	last int64 // ns of the day
	days int64 // ns: whole days that have passed
}

const day = int64(24 * time.Hour)

// parse returns a time of day, "15:47:02.841961", or seconds since the epoch, "1634567890.123456", in ns.
func (c *clock) parse(text string) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	ns, err := parseFraction(fraction)
	if err != nil {
		return 0, fmt.Errorf("is %q, expected hh:mm:ss.ffffff", clip(text))
	}
	if !strings.Contains(whole, ":") {
		s, err := strconv.ParseUint(whole, 10, 64)
		if err != nil || s > trace.MaxTime/uint64(time.Second)-1 {
			return 0, fmt.Errorf("is %q, expected hh:mm:ss.ffffff", clip(text))
		}
		return int64(s)*int64(time.Second) + ns, nil
	}
	t, err := time.Parse(time.TimeOnly, whole)
	if err != nil {
		return 0, fmt.Errorf("is %q, expected hh:mm:ss.ffffff", clip(text))
	}
	ns += int64(t.Hour())*int64(time.Hour) + int64(t.Minute())*int64(time.Minute) + int64(t.Second())*int64(time.Second)
	if ns < c.last-day/2 {
		c.days += day
	}
	c.last = ns
	return c.days + ns, nil
}

// parseFraction returns the digits after the decimal point of a number of seconds, in ns.
func parseFraction(digits string) (int64, error) {
	if len(digits) > 9 {
		digits = digits[:9]
	}
	n, err := strconv.ParseUint("0"+digits, 10, 64)
	for range 9 - len(digits) {
		n *= 10
	}
	return int64(n), err
}
