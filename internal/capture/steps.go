package capture

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gm/formats/trace"
)

// Steps is a range of iterations: From, From+1, ..., To-1, counted from 0.
type Steps struct{ From, To int }

// ParseSteps reads "FROM:TO".
func ParseSteps(text string) (*Steps, error) {
	from, to, ok := strings.Cut(text, ":")
	var s Steps
	var errFrom, errTo error
	s.From, errFrom = strconv.Atoi(from)
	s.To, errTo = strconv.Atoi(to)
	if !ok || errFrom != nil || errTo != nil || s.From < 0 || s.To <= s.From {
		return nil, fmt.Errorf("steps %q are not FROM:TO, such as 3:6 for the iterations 3, 4 and 5, counted from 0", text)
	}
	return &s, nil
}

// String returns the range as ParseSteps reads it; "" for nil.
func (s *Steps) String() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", s.From, s.To)
}

// window is an interval of time, both ends included.
type window struct{ fromNS, toNS int64 }

const endOfTime = 1<<63 - 1

// window returns the time of the iterations, and the marks in it. An iteration that was not reached begins at endOfTime.
func (s *Steps) window(marks []mark) (window, []mark) {
	if s == nil {
		return window{0, endOfTime}, marks
	}
	at := func(step int) int64 {
		if step > len(marks) {
			return endOfTime
		}
		return marks[step-1].timeNS
	}
	w := window{toNS: at(s.To)}
	if s.From > 0 {
		w.fromNS = at(s.From)
	}
	return w, marks[min(s.From, len(marks)):min(s.To, len(marks))]
}

// early is the state at the beginning of a window, built from the driver's rows before it: live blocks, mappings, and what pools hold.
type early struct {
	blocks map[int64]trace.Event
	mapped map[uint64]trace.Event
	pools  map[int32]trace.Event // by the code of the name; Size is what the pool holds
}

func newEarly() *early {
	return &early{blocks: map[int64]trace.Event{}, mapped: map[uint64]trace.Event{}, pools: map[int32]trace.Event{}}
}

// take applies a row from before the window.
func (s *early) take(e trace.Event) {
	switch e.Op {
	case trace.OpAlloc:
		s.blocks[e.ID] = e
	case trace.OpFree:
		delete(s.blocks, e.ID)
	case trace.OpSegmentMap:
		s.mapped[e.Addr] = e
	case trace.OpSegmentUnmap:
		delete(s.mapped, e.Addr)
	case trace.OpSegmentAlloc, trace.OpSegmentFree:
		held := s.pools[e.Pool].Size
		if e.Op == trace.OpSegmentAlloc {
			e.Size += held
		} else {
			e.Size = held - e.Size
		}
		e.Op = trace.OpSegmentAlloc
		s.pools[e.Pool] = e
	}
}

// rows returns rows that recreate the state.
func (s *early) rows() []trace.Event {
	var rows []trace.Event
	for _, pool := range slices.Sorted(maps.Keys(s.pools)) {
		if e := s.pools[pool]; e.Size > 0 {
			rows = append(rows, e)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.blocks)) {
		rows = append(rows, s.blocks[id])
	}
	for _, addr := range slices.Sorted(maps.Keys(s.mapped)) {
		rows = append(rows, s.mapped[addr])
	}
	return rows
}
