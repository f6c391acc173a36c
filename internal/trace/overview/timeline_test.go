package overview

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/tags"
)

// timelines returns the timelines of a whole trace, by tag.
func timelines(t *testing.T, file []byte) (*Overview, []*Timeline) {
	t.Helper()
	o, err := Read(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	views := map[int32]View{}
	for _, d := range o.Devices {
		views[d.Ordinal] = o.Whole(false)
	}
	return o, timelinesOf(t, file, o, views)
}

// timelinesOf returns the timelines of views of a trace, by tag.
func timelinesOf(t *testing.T, file []byte, o *Overview, views map[int32]View) []*Timeline {
	t.Helper()
	labels, err := tags.Derive(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	tops, err := ReadTop(open(t, file), o, Look{Groups: 8, Tags: labels})
	if err != nil {
		t.Fatal(err)
	}
	frames, err := ReadFrames(open(t, file), o, views)
	if err != nil {
		t.Fatal(err)
	}
	all, err := frames.Read(open(t, file), ByTag(labels, tops))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTimeline checks timelines of real runs: the highest column is the peak, and no cell of the map exceeds its size.
func TestTimeline(t *testing.T) {
	for _, name := range []string{"opt13b-fsdp4-LRV-r0", "settings/pools-expandable", "captures/oom"} {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile("../../../testdata/" + name + ".parquet")
			if err != nil {
				t.Fatal(err)
			}
			o, all := timelines(t, file)
			for i, l := range all {
				most, held := int64(0), int64(0)
				for column := range Columns {
					sum := int64(0)
					for _, bytes := range l.Bytes {
						sum += bytes[column]
					}
					most, held = max(most, sum), max(held, l.Held[column])
					if l.Held[column] > 0 && sum > l.Held[column] {
						t.Fatalf("column %d: %d bytes live in %d", column, sum, l.Held[column])
					}
				}
				if most != o.Devices[i].PeakLive || held != o.Devices[i].PeakReserved {
					t.Errorf("most is %d of %d, want %d of %d", most, held, o.Devices[i].PeakLive, o.Devices[i].PeakReserved)
				}
				testMap(t, l)
			}
		})
	}
}

// testMap compares the map with the live bytes, within a thousandth of the map.
func testMap(t *testing.T, l *Timeline) {
	t.Helper()
	cell := float64(l.Map.Bytes) / MapRows
	for column := range Columns {
		parts, held, live := 0, 0, int64(0)
		for row := range MapRows {
			at := column*MapRows + row
			sum := 0
			for name := range l.Names {
				sum += int(l.Map.Parts[at*len(l.Names)+name])
			}
			if sum > 255+len(l.Names) {
				t.Fatalf("column %d, row %d: %d of 255 parts are taken", column, row, sum)
			}
			parts, held = parts+sum, held+int(l.Map.Held[at])
		}
		for _, bytes := range l.Bytes {
			live += bytes[column]
		}
		for _, c := range []struct {
			parts int
			bytes int64
		}{{parts, live}, {held, l.Held[column]}} {
			if got := float64(c.parts) / 255 * cell; max(got-float64(c.bytes), float64(c.bytes)-got) > float64(l.Map.Bytes)/200 {
				t.Fatalf("column %d: the map shows %.0f bytes of %d", column, got, c.bytes)
			}
		}
	}
}

// TestTimelineOfFew checks small traces: blocks stay live in columns without rows; no map without addresses; all rows may have the same time.
func TestTimelineOfFew(t *testing.T) {
	rows := []trace.Event{
		{TimeNS: 0, Op: trace.OpAlloc, ID: 1, Size: 10},
		{TimeNS: 500, Op: trace.OpAlloc, ID: 2, Size: 5},
		{TimeNS: 1000, Op: trace.OpFree, ID: 1},
	}
	_, all := timelines(t, write(t, rows))
	l := all[0]
	var got []int64
	for _, column := range []int{0, 498, 499, 998, 999} {
		sum := int64(0)
		for _, bytes := range l.Bytes {
			sum += bytes[column]
		}
		got = append(got, sum)
	}
	if want := []int64{10, 10, 15, 15, 5}; !slices.Equal(got, want) || l.Map != nil {
		t.Errorf("%v, want %v; map %v", got, want, l.Map)
	}
	for i := range rows {
		rows[i].TimeNS = 7
	}
	if _, all = timelines(t, write(t, rows)); len(all) != 1 {
		t.Errorf("%d timelines", len(all))
	}
	hostile := []trace.Event{
		{Op: trace.OpSegmentAlloc, Addr: 1 << 40, Size: trace.MaxSize},
		{Op: trace.OpAlloc, ID: 1, Addr: 1<<64 - 4096 - trace.MaxSize, Size: trace.MaxSize},
	}
	if _, all = timelines(t, write(t, hostile)); all[0].Map != nil {
		t.Error("a map of more addresses than there can be")
	}
}

func TestRowAt(t *testing.T) {
	file := write(t, []trace.Event{{TimeNS: 5, Op: trace.OpMark}, {TimeNS: 7, Op: trace.OpMark}, {TimeNS: 7, Op: trace.OpMark}, {TimeNS: 9, Op: trace.OpMark}})
	for timeNS, want := range map[int64]int64{0: 0, 5: 0, 6: 0, 7: 2, 8: 2, 9: 3, 100: 3} {
		if row, err := RowAt(open(t, file), timeNS); err != nil || row != want {
			t.Errorf("at %d: row %d, error %v, want %d", timeNS, row, err, want)
		}
	}
}

// TestReadTopAt checks a row other than the peak, on all devices.
func TestReadTopAt(t *testing.T) {
	file := write(t, []trace.Event{
		{Op: trace.OpAlloc, ID: 1, Size: 100}, {Op: trace.OpAlloc, ID: 2, Size: 30, Device: 1}, {Op: trace.OpFree, ID: 1},
		{Op: trace.OpAlloc, ID: 3, Size: 7},
	})
	o, err := Read(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	labels, err := tags.Derive(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	row := int64(3)
	all, err := ReadTop(open(t, file), o, Look{Groups: 1, Tags: labels, At: &row})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Moments[0].Live != 7 || all[1].Moments[0].Live != 30 || all[1].Moments[0].Row != 3 {
		t.Errorf("%+v", all)
	}
}

// FuzzTimeline checks, for any rows, that the highest column is the peak, and that the rest of a map is free.
func FuzzTimeline(f *testing.F) {
	f.Add(uint64(1), uint16(300))
	f.Add(uint64(2), uint16(2))
	f.Fuzz(func(t *testing.T, seed uint64, rows uint16) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var all []trace.Event
		var live []int64
		ids, now := int64(0), int64(0)
		for range rows % 1000 {
			now += rng.Int64N(1 << rng.IntN(30))
			e := trace.Event{TimeNS: now, Size: 1 + rng.Int64N(1<<rng.IntN(40)), Addr: rng.Uint64() >> rng.IntN(64)}
			switch n := rng.IntN(20); {
			case n < 3:
				e.Op = []trace.Op{trace.OpSegmentAlloc, trace.OpSegmentFree, trace.OpSegmentMap}[n]
			case n < 12 || len(live) == 0:
				ids++
				e.Op, e.ID = trace.OpAlloc, ids
				live = append(live, ids)
			default:
				i := rng.IntN(len(live))
				e.Op, e.ID = trace.OpFree, live[i]
				live = append(live[:i], live[i+1:]...)
			}
			all = append(all, e)
		}
		o, lines := timelines(t, write(t, all))
		for i, l := range lines {
			most := int64(0)
			for column := range Columns {
				sum := int64(0)
				for _, bytes := range l.Bytes {
					if bytes[column] < 0 {
						t.Fatalf("column %d: %d bytes", column, bytes[column])
					}
					sum += bytes[column]
				}
				most = max(most, sum)
			}
			if most != o.Devices[i].PeakLive {
				t.Errorf("most is %d, want %d", most, o.Devices[i].PeakLive)
			}
		}
	})
}
