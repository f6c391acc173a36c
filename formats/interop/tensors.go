package main

import (
	"cmp"
	"fmt"
	"slices"

	"gm/formats/trace"
)

// tensors sums up the allocations of a framework.
type tensors struct {
	live       map[int64]tensor // by id
	now, peaks map[int32]int64  // live bytes by device
	streams    map[streamKey]*total
	stacks     map[stackKey]*total
}

type tensor struct {
	device int32
	size   int64
}

type streamKey struct {
	device int32
	stream int64
}

type stackKey struct {
	device int32
	stack  string
}

type total struct{ allocs, bytes int64 }

func newTensors() *tensors {
	return &tensors{
		live: map[int64]tensor{}, now: map[int32]int64{}, peaks: map[int32]int64{}, streams: map[streamKey]*total{}, stacks: map[stackKey]*total{},
	}
}

func (t *tensors) add(e *trace.Event, stack string) {
	switch e.Op {
	case trace.OpAlloc:
		t.live[e.ID] = tensor{e.Device, e.Size}
		t.now[e.Device] += e.Size
		t.peaks[e.Device] = max(t.peaks[e.Device], t.now[e.Device])
		count(t.streams, streamKey{e.Device, e.Stream}, e.Size)
		count(t.stacks, stackKey{e.Device, stack}, e.Size)
	case trace.OpFree, trace.OpFreeCompleted:
		freed := t.live[e.ID]
		t.now[freed.device] -= freed.size
		delete(t.live, e.ID)
	}
}

func count[K comparable](totals map[K]*total, key K, bytes int64) {
	if totals[key] == nil {
		totals[key] = &total{}
	}
	totals[key].allocs++
	totals[key].bytes += bytes
}

// describe adds to a summary what queries are compared with, in their order.
func (t *tensors) describe(s *summary) {
	s.Devices = map[string]string{}
	for device, peak := range t.peaks {
		s.Devices[fmt.Sprint(device)] = fmt.Sprint(peak)
	}
	for _, key := range sorted(t.streams, func(a, b streamKey) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.stream, b.stream))
	}) {
		sum := t.streams[key]
		s.Lanes = append(s.Lanes, lane{fmt.Sprint(key.device), fmt.Sprint(key.stream), fmt.Sprint(sum.allocs), fmt.Sprint(sum.bytes)})
	}
	stacks := sorted(t.stacks, func(a, b stackKey) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.stack, b.stack))
	})
	if len(stacks) > 0 {
		sum := t.stacks[stacks[0]]
		s.Top = &stackTotal{fmt.Sprint(stacks[0].device), stacks[0].stack, fmt.Sprint(sum.allocs), fmt.Sprint(sum.bytes)}
	}
}

// sorted returns the keys of totals, those of most bytes first.
func sorted[K comparable](totals map[K]*total, compare func(a, b K) int) []K {
	var keys []K
	for key := range totals {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Or(cmp.Compare(totals[b].bytes, totals[a].bytes), compare(a, b)) })
	return keys
}
