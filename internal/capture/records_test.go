package capture

import (
	"fmt"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// TestRecords says what rows records come to: the operation, bytes, the address where there is one, and the device where it is not the first.
func TestRecords(t *testing.T) {
	const a, b = 0x1000, 0x2000
	type records []ring.Record
	for name, test := range map[string]struct {
		records records
		want    string
	}{
		"a free that fails": {
			records{{Kind: ring.Alloc, A: a, B: 64}, {Kind: ring.Free, A: a}, {Kind: ring.FreeFailed, A: a}, {Kind: ring.Free, A: a}},
			"alloc 64@1000, free 64@1000, alloc 64@1000, free 64@1000"},
		"of another address": {
			records{{Kind: ring.Alloc, A: a, B: 64}, {Kind: ring.Free, A: a}, {Kind: ring.FreeFailed, A: b}},
			"alloc 64@1000, free 64@1000"},
		"in another thread": {
			records{{Kind: ring.Alloc, A: a, B: 64}, {Kind: ring.Free, A: a, Thread: 1}, {Kind: ring.FreeFailed, A: a, Thread: 2}},
			"alloc 64@1000, free 64@1000"},
		"behind a free of nothing": {
			records{{Kind: ring.Alloc, A: a, B: 64}, {Kind: ring.Free, A: a}, {Kind: ring.Free, A: b}, {Kind: ring.FreeFailed, A: a}},
			"alloc 64@1000, free 64@1000"},
		"a block in the place of one": {
			records{{Kind: ring.Alloc, A: a, B: 64}, {Kind: ring.Alloc, A: a, B: 32}},
			"alloc 64@1000, free 64@1000, alloc 32@1000"},
		"memory of the host": {
			records{{Kind: ring.HostAlloc, A: a, B: 64}, {Kind: ring.HostFree, A: a}, {Kind: ring.HostFreeFailed, A: a}},
			"alloc 64@1000, free 64@1000, alloc 64@1000"},
		"a pool that grows, shrinks and goes": {
			records{{Kind: ring.PoolSize, D: 7, B: 100}, {Kind: ring.PoolSize, D: 7, B: 100}, {Kind: ring.PoolSize, D: 7, B: 40}, {Kind: ring.PoolGone, D: 7}},
			"segment_alloc 100, segment_free 60, segment_free 40"},
		"physical memory without a mapping": {
			records{{Kind: ring.Create, A: a, B: 64}, {Kind: ring.Release, A: a}}, "alloc 64, free 64"},
		"a release that fails": {
			records{{Kind: ring.Create, A: a, B: 64}, {Kind: ring.Release, A: a}, {Kind: ring.ReleaseFailed, A: a}, {Kind: ring.Release, A: a}},
			"alloc 64, free 64, alloc 64, free 64"},
		"of another handle": {
			records{{Kind: ring.Create, A: a, B: 64}, {Kind: ring.Release, A: a}, {Kind: ring.ReleaseFailed, A: b}}, "alloc 64, free 64"},
		"of one of two references": {
			records{{Kind: ring.Create, A: a, B: 64}, {Kind: ring.Retain, A: a}, {Kind: ring.Release, A: a}, {Kind: ring.ReleaseFailed, A: a},
				{Kind: ring.Release, A: a}, {Kind: ring.Release, A: a}},
			"alloc 64, free 64"},
		"a mapping that outlives its handle": {
			records{{Kind: ring.Create, A: a, B: 64}, {Kind: ring.Map, A: b, B: 64, C: a}, {Kind: ring.Release, A: a}, {Kind: ring.ReleaseFailed, A: a},
				{Kind: ring.Release, A: a}, {Kind: ring.Unmap, A: b, B: 64}},
			"alloc 64, segment_map 64@2000, segment_unmap 64@2000, free 64"},
		"an unmapping that fails": {
			records{{Kind: ring.Create, A: a, B: 64}, {Kind: ring.Map, A: b, B: 64, C: a}, {Kind: ring.Release, A: a}, {Kind: ring.Unmap, A: b, B: 64},
				{Kind: ring.UnmapFailed, A: b}},
			"alloc 64, segment_map 64@2000, segment_unmap 64@2000, free 64, alloc 64, segment_map 64@2000"},
		"an unmapping of two": {
			records{{Kind: ring.Map, A: b, B: 64}, {Kind: ring.Map, A: b + 64, B: 32}, {Kind: ring.Map, A: b + 96, B: 32}, {Kind: ring.Unmap, A: b, B: 96}},
			"segment_map 64@2000, segment_map 32@2040, segment_map 32@2060, segment_unmap 64@2000, segment_unmap 32@2040"},
		"a context of a known size": {
			records{{Kind: ring.Context, A: a, B: 100, C: 60}, {Kind: ring.Context, A: a, B: 100, C: 60}, {Kind: ring.ContextGone, A: a}},
			"alloc 40, free 40"},
		"one that was asked for": {records{{Kind: ring.Context, A: a, B: 100, D: settled}, {Kind: ring.ContextGone, A: a}}, "alloc 100, free 100"},
		"one that nobody knows":  {records{{Kind: ring.Context, A: a, B: 100}, {Kind: ring.ContextGone, A: a}}, ""},
		"a primary context takes its blocks and pools along": {
			records{{Kind: ring.Primary, A: a, B: 9, C: 1, Device: 1}, {Kind: ring.PoolSize, D: 7, B: 5, Device: 1}, {Kind: ring.PoolSize, D: 8, B: 3},
				{Kind: ring.Alloc, A: b, B: 6, C: a, Device: 1}, {Kind: ring.Alloc, A: b + 8, B: 4, C: b}, {Kind: ring.ContextGone, Device: 1}},
			"alloc 8 on 1, segment_alloc 5 on 1, segment_alloc 3, alloc 6@2000 on 1, alloc 4@2008, free 6@2000 on 1, segment_free 5 on 1, free 8 on 1"},
		"of no device": {
			records{{Kind: ring.Alloc, A: a, B: 6, Device: -1}, {Kind: ring.Free, A: a, Device: -1}, {Kind: ring.Map, A: b, B: 64, Device: -1},
				{Kind: ring.Unmap, A: b, B: 64}, {Kind: ring.PoolSize, D: 7, B: 5, Device: -1}, {Kind: ring.OOM, B: 9, Device: -1}},
			"alloc 6@1000, free 6@1000, segment_map 64@2000, segment_unmap 64@2000, segment_alloc 5, oom 9"},
		"of another device": {
			records{{Kind: ring.Map, A: b, B: 64, Device: 2}, {Kind: ring.OOM, B: 9, Device: 2}}, "segment_map 64@2000 on 2, oom 9 on 2"},
		"an empty mapping": {records{{Kind: ring.Map, A: b}, {Kind: ring.Unmap, A: b, B: 64}}, "segment_map 0@2000"},
		"a mapping that is unmapped in part": {
			records{{Kind: ring.Map, A: b, B: 64}, {Kind: ring.Map, A: b + 64, B: 64}, {Kind: ring.Unmap, A: b, B: 65}},
			"segment_map 64@2000, segment_map 64@2040, segment_unmap 64@2000, segment_unmap 64@2040"},
		"an unmapping of another address that fails": {
			records{{Kind: ring.Map, A: b, B: 64}, {Kind: ring.Unmap, A: b, B: 64}, {Kind: ring.UnmapFailed, A: a}, {Kind: ring.UnmapFailed, A: b, Thread: 1}},
			"segment_map 64@2000, segment_unmap 64@2000"},
		"a handle obtained from an address": {
			records{{Kind: ring.Create, A: a, B: 64}, {Kind: ring.Map, A: b, B: 64, C: a}, {Kind: ring.Release, A: a}, {Kind: ring.Retain, A: 3, B: b},
				{Kind: ring.Unmap, A: b, B: 64}, {Kind: ring.Release, A: 3}},
			"alloc 64, segment_map 64@2000, segment_unmap 64@2000, free 64"},
		"memory that was imported": {
			records{{Kind: ring.Retain, A: 3, B: b}, {Kind: ring.Release, A: 3}, {Kind: ring.ReleaseFailed, A: 3}}, ""},
		"code and a limit of a context": {
			records{{Kind: ring.Context, A: a, B: 9, C: 1}, {Kind: ring.Grew, B: 5, C: a}, {Kind: ring.Grew, B: 6, C: a, D: ring.GrowthLimit}, {Kind: ring.ContextGone, A: b},
				{Kind: ring.ContextGone, A: a}, {Kind: ring.Context, A: a, B: 9, C: 1}},
			"alloc 8, alloc 5, alloc 6, free 8, free 5, free 6, alloc 8"},
		"another context and its pools stay": {
			records{{Kind: ring.Primary, A: a, B: 9, C: 1}, {Kind: ring.Context, A: b, B: 9, C: 1}, {Kind: ring.Alloc, A: 1, B: 6, C: b},
				{Kind: ring.PoolAlloc, A: 2, B: 7, D: 3}, {Kind: ring.ContextGone, A: b}, {Kind: ring.Alloc, A: 3, B: 5, C: 4}, {Kind: ring.ContextGone}},
			"alloc 8, alloc 8, alloc 6@1, alloc 7@2, free 6@1, free 8, alloc 5@3, free 7@2, free 8"},
		"the end of a context that nobody knows": {records{{Kind: ring.Alloc, A: a, B: 6}, {Kind: ring.ContextGone}}, "alloc 6@1000"},
		"figures of NVML":                        {records{{Kind: kindSample, A: sampleProcess, B: 5, Device: -1}, {Kind: kindSample, B: 7, Device: 2}}, "sample 5, sample 7 on 2"},
	} {
		out := newRows()
		in := newInterpreter(&out, nil)
		for i := range test.records {
			in.take(&test.records[i])
		}
		if got := described(&out.batch); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

func described(b *trace.Batch) string {
	var all []string
	for i := range b.Len() {
		e := b.Row(i)
		text := fmt.Sprintf("%v %d", e.Op, e.Size)
		if e.Addr != 0 {
			text += fmt.Sprintf("@%x", e.Addr)
		}
		if e.Device != 0 {
			text += fmt.Sprintf(" on %d", e.Device)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
