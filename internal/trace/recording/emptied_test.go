package recording

import (
	"testing"

	"gm/formats/trace"
	"gm/internal/torch/allocconf"
)

const mib = 1 << 20

// rows is a recording with two segments, one of which stays in use, and one segment of the small pool.
func rows() []trace.Event {
	return []trace.Event{
		{Op: trace.OpSegmentAlloc, Addr: 100 * mib, Size: 20 * mib},
		{Op: trace.OpAlloc, ID: 1, Addr: 100 * mib, Size: 5 * mib},
		{Op: trace.OpSegmentAlloc, Addr: 200 * mib, Size: 40 * mib},
		{Op: trace.OpAlloc, ID: 2, Addr: 200 * mib, Size: 40 * mib},
		{Op: trace.OpSegmentAlloc, Addr: 300 * mib, Size: 2 * mib},
		{Op: trace.OpAlloc, ID: 3, Addr: 300 * mib, Size: 100},
		{Op: trace.OpFree, ID: 2},
		{Op: trace.OpFreeRequested, ID: 3},
		{Op: trace.OpFreeCompleted, ID: 3},
	}
}

// watch returns the rows at which the cache was emptied, as detected.
func watch(t *testing.T, settings string, events []trace.Event) []int64 {
	conf, err := allocconf.Parse(settings)
	if err != nil {
		t.Fatal(err)
	}
	d := NewEmptied(conf)
	var found []int64
	for row := range events {
		if at := d.Add(&events[row], int64(row)); at >= 0 {
			found = append(found, at)
		}
	}
	return found
}

func TestEmptied(t *testing.T) {
	large := trace.Event{Op: trace.OpSegmentFree, Addr: 200 * mib, Size: 40 * mib}
	small := trace.Event{Op: trace.OpSegmentFree, Addr: 300 * mib, Size: 2 * mib}
	segment := trace.Event{Op: trace.OpSegmentAlloc, Addr: 400 * mib, Size: 80 * mib}
	alloc := trace.Event{Op: trace.OpAlloc, ID: 9, Addr: 400 * mib, Size: 80 * mib}
	mark := trace.Event{Op: trace.OpMark}
	sample := trace.Event{Op: trace.OpSample, Level: trace.LevelDriver, Size: 30 * mib}
	freed := trace.Event{Op: trace.OpFree, ID: 8, Level: trace.LevelDriver}
	pool := trace.Event{Op: trace.OpSegmentFree, Level: trace.LevelDriver, Addr: 200 * mib, Size: 40 * mib}
	refused := trace.Event{Op: trace.OpOOM, Level: trace.LevelDriver, Size: 80 * mib}
	for name, c := range map[string]struct {
		settings string
		then     []trace.Event
		want     int64 // -1: never
	}{
		"nothing given back":                  {"", []trace.Event{alloc}, -1},
		"all given back":                      {"", []trace.Event{large, small, alloc}, 10},
		"a mark between":                      {"", []trace.Event{large, small, mark, alloc}, 10},
		"the driver's rows between":           {"", []trace.Event{large, freed, small, sample, pool, refused, alloc}, 11},
		"a pool of the driver shrinks":        {"", []trace.Event{pool, alloc}, -1},
		"by default some is all":              {"", []trace.Event{large, segment, alloc}, 9},
		"some, to make room":                  {"max_split_size_mb:32", []trace.Event{large, segment, alloc}, -1},
		"all, before a request":               {"max_split_size_mb:32", []trace.Event{large, small, segment, alloc}, 10},
		"all, with rows of others between":    {"max_split_size_mb:32", []trace.Event{large, freed, sample, small, mark, segment, alloc}, 12},
		"all, in another order, to make room": {"max_split_size_mb:32", []trace.Event{small, large, segment, alloc}, -1},
		"some, but not to make room":          {"garbage_collection_threshold:0.5", []trace.Event{large, alloc}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			found := watch(t, c.settings, append(rows(), c.then...))
			if c.want < 0 && len(found) > 0 || c.want >= 0 && (len(found) != 1 || found[0] != c.want) {
				t.Errorf("emptied at %v, want %d", found, c.want)
			}
		})
	}
}

// TestPendingIsNotEmptied checks that a cache with pending frees does not count as emptied.
func TestPendingIsNotEmptied(t *testing.T) {
	events := rows()[:8] // without the end of the free of 3
	events = append(events,
		trace.Event{Op: trace.OpSegmentFree, Addr: 200 * mib, Size: 40 * mib},
		trace.Event{Op: trace.OpSegmentAlloc, Addr: 400 * mib, Size: 80 * mib})
	if found := watch(t, "max_split_size_mb:32", events); len(found) > 0 {
		t.Errorf("emptied at %v while a free is pending", found)
	}
}
