package page

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

func measure(t *testing.T, file, allocators string, capacity int64) []*Section {
	t.Helper()
	programs, err := replay.Open("../../../testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return measureAll(t, programs, allocators, capacity)
}

func measureAll(t *testing.T, programs []*replay.Program, allocators string, capacity int64) []*Section {
	t.Helper()
	specs, err := bench.ParseSpecs(allocators)
	if err != nil {
		t.Fatal(err)
	}
	mapped := -1
	for i := range specs {
		if specs[i].OneAddress {
			mapped = i
		}
	}
	sections, err := Measure(context.Background(), programs, specs, mapped, bench.GPU{Capacity: capacity, Costs: sim.H200()}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return sections
}

func write(t *testing.T, sections []*Section) string {
	t.Helper()
	var out bytes.Buffer
	if err := (&Report{Title: "test", Version: "devel", Sections: sections}).Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCurves: the highest bucket is the peak, and there are as many buckets as times.
func TestCurves(t *testing.T) {
	s := measure(t, "resnet152-V.parquet", "floor,stitch,expandable,torch", 0)[0]
	for i, row := range s.Rows {
		highest := func(c curve) (most int64) {
			for k, bytes := range c.most {
				if c.least[k] > bytes {
					t.Errorf("%s: bucket %d is from %d to %d", row.Allocator, k, c.least[k], bytes)
				}
				most = max(most, bytes)
			}
			return most
		}
		if got := highest(s.series[i].reserved); got != row.PeakReserved {
			t.Errorf("%s: the curve reaches %d, the peak is %d", row.Allocator, got, row.PeakReserved)
		}
		if got := highest(s.series[i].allocated); got != row.PeakAllocated {
			t.Errorf("%s: the curve of allocated bytes reaches %d, the peak is %d", row.Allocator, got, row.PeakAllocated)
		}
		if n := len(s.series[i].reserved.least); n != len(s.times) {
			t.Errorf("%s: %d buckets, %d times", row.Allocator, n, len(s.times))
		}
	}
}

// TestLongTrace: a trace that is too long has fewer buckets, with the same peaks.
func TestLongTrace(t *testing.T) {
	programs, err := replay.Open("../../../testdata/resnet152-V.parquet")
	if err != nil {
		t.Fatal(err)
	}
	p := programs[0]
	for _, limit := range []int{600, 5000, p.Steps() - 1, p.Steps()} {
		s := newSection(p, 1, limit)
		dev := sim.New(0, sim.H200())
		a, err := blocks.NewTorch(dev, allocconf.Default())
		if err != nil {
			t.Fatal(err)
		}
		res, err := replay.RunWatched(t.Context(), p, a, dev, s.newSeries(0, a).watch)
		if err != nil {
			t.Fatal(err)
		}
		n := len(s.series[0].reserved.most)
		if slices.Max(s.series[0].reserved.most) != res.Stats.PeakReserved || n != len(s.times) {
			t.Errorf("limit %d: %d buckets, %d times", limit, n, len(s.times))
		}
		if numbers := n * min(s.stride, 2); numbers > limit || numbers < limit/3 {
			t.Errorf("limit %d: %d numbers, %d steps a bucket", limit, numbers, s.stride)
		}
	}
}

func TestBuckets(t *testing.T) {
	var c curve
	for i, n := range []int64{5, 3, 4, 7, 7, 7, 2} {
		c.add(n, i%3 == 0)
	}
	for i, want := range [][2]int64{{3, 5}, {7, 7}, {2, 2}} {
		if c.least[i] != want[0] || c.most[i] != want[1] {
			t.Errorf("bucket %d is from %d to %d, expected %v", i, c.least[i], c.most[i], want)
		}
	}
}

// TestMapIsTheCurve: what the cells of the map add up to is the bytes in use, and reserved, over time.
func TestMapIsTheCurve(t *testing.T) {
	for _, allocator := range []string{"torch", "expandable"} {
		programs, err := replay.Open("../../../testdata/opt13b-LRV.parquet")
		if err != nil {
			t.Fatal(err)
		}
		p := programs[0]
		r := measureAll(t, programs, allocator, 0)[0].places
		var live float64 // bytes times nanoseconds
		sum := int64(0)
		for step, kind := range p.Kinds {
			if step > 0 {
				live += float64(sum) * float64(p.TimesNS[step]-p.TimesNS[step-1])
			}
			switch size := (p.Sizes[p.Tensors[step]] + p.Align - 1) / p.Align * p.Align; kind {
			case replay.Alloc:
				sum += size
			case replay.Free, replay.Complete:
				sum -= size
			}
		}
		cells, idle := 0.0, 0
		for i, share := range r.Live {
			cells += float64(share) / 255
			if int(share) > int(r.Reserved[i])+20 {
				idle++
			}
		}
		area := float64(r.Total) / lines * float64(r.Span) / columns
		if ratio := cells * area / live; math.Abs(ratio-1) > 0.01 {
			t.Errorf("%s: the map holds %.4f of what is live", allocator, ratio)
		}
		if idle > len(r.Live)/1000 {
			t.Errorf("%s: in %d of %d cells more is in use than reserved", allocator, idle, len(r.Live))
		}
	}
}

// TestMapEndsWithTheReplay: nothing is in use after a replay has run out of memory.
func TestMapEndsWithTheReplay(t *testing.T) {
	s := measure(t, "resnet152-V.parquet", "torch", 23<<30)[0]
	oom := s.Rows[0].OOM
	if oom == nil {
		t.Fatal("it fits")
	}
	programs, err := replay.Open("../../../testdata/resnet152-V.parquet")
	if err != nil {
		t.Fatal(err)
	}
	end := int(float64(oom.TimeNS-programs[0].TimesNS[0])/float64(s.places.Span)*columns) + 1
	for column := range columns {
		held := slices.Max(s.places.Reserved[column*lines : (column+1)*lines])
		if column > end && held > 0 || column > end/2 && column < end-1 && held == 0 {
			t.Fatalf("column %d, the last is %d: held %d", column, end, held)
		}
	}
}

func TestPageIsTheSameAgain(t *testing.T) {
	once := write(t, measure(t, "captures/opt1.3b.parquet", "floor,planned,stitch,expandable,torch", 0))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if again := write(t, measure(t, "captures/opt1.3b.parquet", "floor,planned,stitch,expandable,torch", 0)); again != once {
		t.Error("two pages of one trace differ")
	}
	for _, foreign := range []string{"http:", "https:", "src=", "@import", "<link"} {
		if strings.Contains(once, foreign) {
			t.Errorf("the page has %q, so it may need the network", foreign)
		}
	}
}

// TestNotes: a report of a job that died says why, and what leaks; one of a job that did not has no notes.
func TestNotes(t *testing.T) {
	for file, want := range map[string][]string{
		"captures/oom.parquet": {"Out of memory on GPU 0, row ", "leak: device 0: 20 GiB an iteration"},
		"resnet152-V.parquet":  nil,
	} {
		text := write(t, measure(t, file, "torch", 0))
		for _, note := range want {
			if !strings.Contains(text, `<p class="note">`+note) {
				t.Errorf("%s: no note %q", file, note)
			}
		}
		if want == nil && strings.Contains(text, `class="note"`) {
			t.Errorf("%s has a note", file)
		}
	}
}

// TestHostileNames: no name ends or begins a script, an attribute or a tag.
func TestHostileNames(t *testing.T) {
	const hostile = `"'></title></script><script>alert(1)</script><img src=x onerror=alert(2)>{{.Data}}` + "`${alert(3)}`<!-- \u202e\x00\u2028"
	asked := strings.ReplaceAll(hostile, "\u202e", "") // by the user, on the command line
	p := &replay.Program{Name: hostile, Align: 512}
	for i := range 3 {
		p.Kinds, p.Tensors = append(p.Kinds, replay.Alloc), append(p.Tensors, int32(i))
		p.Rows, p.TimesNS = append(p.Rows, int32(i)), append(p.TimesNS, int64(i)*1e6)
		p.Sizes, p.Streams, p.Pools = append(p.Sizes, 3<<20), append(p.Streams, cuda.Stream(0)), append(p.Pools, blocks.Pool(0))
	}
	sections := measureAll(t, []*replay.Program{p}, "torch", 0)
	sections[0].Top = Top{Row: 1, Live: 2, Stacked: true, Groups: []Group{{Name: hostile + " (" + hostile + ".py:1);" + hostile, Bytes: 2, Blocks: 1}}}
	sections[0].Rows[0].Allocator, sections[0].mapped = "torch:"+asked, "torch:"+asked
	page := write(t, sections)
	for what, n := range map[string]int{"<script": 2, "</script": 2, "<img": 0, "<title": 1, "</title": 1, "<!--": 0, "\u202e": 0, "\x00": 0} {
		if got := strings.Count(page, what); got != n {
			t.Errorf("%q is there %d times, expected %d", what, got, n)
		}
	}
	_, rest, _ := strings.Cut(page, `id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	var d data
	if err := json.Unmarshal([]byte(text), &d); err != nil || d.Sections[0].Series[0].Name != "torch:"+asked {
		t.Errorf("the data is %v, %v", d.Sections, err)
	}
}

// TestNothingFits: an allocator that cannot begin has no curve, and one that ends early a shorter one.
func TestNothingFits(t *testing.T) {
	s := measure(t, "resnet152-V.parquet", "planned,torch", 20<<30)[0]
	if s.series[0] != nil || len(s.series[1].reserved.least) >= len(s.times) || s.Rows[1].OOM == nil {
		t.Errorf("planned has %v, torch %d of %d buckets", s.series[0], len(s.series[1].reserved.least), len(s.times))
	}
	if page := write(t, []*Section{s}); !strings.Contains(page, "Out of memory at row ") ||
		!strings.Contains(page, "Out of memory before the first row: ") {
		t.Error("the page does not say twice that memory ran out")
	}
}

// TestAlarms: the curves have the capacity of the simulated GPU or else of the traced one, the requests that failed, and where an allocator
// ran out of memory.
func TestAlarms(t *testing.T) {
	for capacity, want := range map[int64]int64{0: 150109880320, 100 << 30: 100 << 30} {
		s := measure(t, "captures/oom.parquet", "torch", capacity)[0]
		d, err := newData([]*Section{s})
		if err != nil {
			t.Fatal(err)
		}
		got := d.Sections[0]
		if got.Limit != want || len(got.Failed) == 0 || got.Failed[0] < 1e9 || got.Failed[0] > 2e9 {
			t.Errorf("the capacity is %d, failures are at %v", got.Limit, got.Failed)
		}
		if died := got.Series[0].Died; (died != nil) != (capacity > 0) || died != nil && *died > got.Span {
			t.Errorf("capacity %d: it died at %v", capacity, died)
		}
	}
}

// TestTop: the groups are what lives at the peak, by stack where there are any.
func TestTop(t *testing.T) {
	for file, stacked := range map[string]bool{"resnet152-V.parquet": false, "captures/oom.parquet": true} {
		programs, err := replay.Open("../../../testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		top, err := readTop(programs[0])
		if err != nil {
			t.Fatal(err)
		}
		var bytes int64
		blocks := 0
		for _, g := range top.Groups {
			bytes += g.Bytes
			blocks += g.Blocks
		}
		if top.Stacked != stacked || bytes > top.Live || blocks > top.Blocks || len(top.Groups) == 0 || len(top.Groups) > mostGroups {
			t.Errorf("%s: %+v", file, top)
		}
	}
}
