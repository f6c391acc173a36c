package ring

import (
	"bytes"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Header describes a process. It is written when the process first touches CUDA.
type Header struct {
	PID       int
	Rank      int // of WorldSize processes; this and the next two are -1 if unknown
	LocalRank int
	WorldSize int
	StartNS   int64    // nanoseconds since the Unix epoch
	Command   []string // words of the command line
}

// maxRank bounds ranks and world sizes.
const maxRank = 1 << 24

// readHeader reads the header. For a ring of another version the PID stays 0.
func (r *Ring) readHeader() error {
	m := &r.mapping
	if *m.word(0) != magic || m.int32(offVersion) != version || m.int32(offSlots) != slotCount {
		return nil
	}
	rank := func(offset int) int {
		if n := m.int32(offset); n >= 0 && n < maxRank {
			return n
		}
		return -1
	}
	r.clock = newClock(*m.word(offStart), *m.word(offStartMono))
	r.Header = Header{
		PID: max(m.int32(offPID), 1), Rank: rank(offRank), LocalRank: rank(offLocalRank), WorldSize: rank(offWorldSize),
		StartNS: r.clock.startNS, Command: words(m.memory[offCommand : offCommand+commandSize]),
	}
	return nil
}

// words splits text into words, each of which ends in a zero byte.
func words(text []byte) []string {
	var list []string
	for {
		end := bytes.IndexByte(text, 0)
		if end <= 0 {
			return list
		}
		list = append(list, string(text[:end]))
		text = text[end+1:]
	}
}

// clock converts times of the monotonic clock, which records carry, to the time of day. The offset is that of the process's start, whatever
// was done to the time of day since.
type clock struct {
	startNS int64  // time of day
	start   uint64 // the same on the monotonic clock
	latest  uint64 // the latest time that a record may have
	last    uint64 // the time of the last valid record
}

func newClock(startNS, start uint64) clock {
	const never = 1 << 62
	c := clock{startNS: int64(min(startNS, never)), start: min(start, never)}
	c.last = c.start
	return c
}

// look reads the clocks to set latest. The process's monotonic clock may differ from ours, as in a time namespace of a container; then
// the time of day says how long ago its start was.
func (c *clock) look() {
	const slack = 1_000_000
	ago := max(time.Now().UnixNano()-c.startNS, 0)
	c.latest = max(Monotonic(), c.start+uint64(ago)) + slack
}

// wall returns a record's time of day. If the time is impossible, before the start or in the future, it returns that of the record
// before, and false.
func (c *clock) wall(at uint64) (ns int64, ok bool) {
	if at > c.latest {
		c.look() // time passed since the last look
	}
	ok = at >= c.start && at <= c.latest
	if ok {
		c.last = at
	}
	return c.day(c.last), ok
}

func (c *clock) now() int64 {
	c.look()
	return c.day(min(max(Monotonic(), c.start), c.latest))
}

func (c *clock) day(at uint64) int64 {
	return int64(min(uint64(c.startNS)+(at-c.start), math.MaxInt64))
}

// Monotonic returns the system's monotonic clock, in nanoseconds: the clock of the records.
func Monotonic() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("BUG: no monotonic clock: " + err.Error()) // Linux has had one since 2.6
	}
	return uint64(t.Nano())
}
