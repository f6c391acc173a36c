package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/tags"
)

const testdata = "../../../testdata/"

// source returns a file in memory as a source.
func source(t testing.TB, file []byte, name string) *column.Source {
	t.Helper()
	s, err := column.NewTemporary(name, func(w io.Writer) error {
		_, err := w.Write(file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// read reads a trace in memory.
func read(t testing.TB, file []byte, name string) *Recording {
	t.Helper()
	r, err := ReadSource(source(t, file, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// write returns a trace of these rows.
func write(t testing.TB, rows []trace.Event, texts ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{Capacity: 1 << 30})
	for _, text := range texts {
		w.Strings().Code(text)
	}
	var b trace.Batch
	for _, e := range rows {
		b.Append(e)
	}
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// unpacked is a part as the script unpacks it.
type unpacked struct {
	partData
	times, rows, births, lives, kinds, spots   []int64
	sizes, stacks, labels                      []int64
	addresses                                  []int64
	segmentFrom, segmentLife, segmentLow, high []int64
}

func unpack(t testing.TB, p *part) *unpacked {
	t.Helper()
	text, err := p.pack()
	if err != nil {
		t.Fatal(err)
	}
	in := inflate(t, text)
	meta := make([]byte, len(in.list()))
	if _, err := io.ReadFull(in, meta); err != nil {
		t.Fatal(err)
	}
	var u unpacked
	if err := json.Unmarshal(meta, &u.partData); err != nil {
		t.Fatal(err)
	}
	u.times, u.rows, u.births, u.lives, u.kinds, u.spots = in.numbers(), in.numbers(), in.numbers(), in.counts(), in.counts(), in.counts()
	u.sizes, u.stacks, u.labels = in.numbers(), in.counts(), in.counts()
	in.counts() // streams
	in.counts() // pools
	in.counts() // tensors that a band stands for
	u.addresses = in.numbers()
	u.segmentFrom, u.segmentLife, u.segmentLow, u.high = in.numbers(), in.counts(), in.numbers(), in.counts()
	in.counts() // streams
	if in.Len() > 0 {
		t.Errorf("%d bytes are left", in.Len())
	}
	return &u
}

// packed reads what a Packer packed.
type packed struct {
	*bytes.Reader
	t testing.TB
}

func inflate(t testing.TB, text string) packed {
	t.Helper()
	deflated, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(deflated)))
	if err != nil {
		t.Fatal(err)
	}
	return packed{bytes.NewReader(raw), t}
}

// list returns a list of the length that is read.
func (in packed) list() []int64 {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		in.t.Fatal(err)
	}
	return make([]int64, n)
}

func (in packed) numbers() []int64 {
	list, last := in.list(), int64(0)
	for i := range list {
		difference, _ := binary.ReadVarint(in)
		last += difference
		list[i] = last
	}
	return list
}

func (in packed) counts() []int64 {
	list := in.list()
	for i := range list {
		n, _ := binary.ReadUvarint(in)
		list[i] = int64(n)
	}
	return list
}

// stackAt adds up the tensors that live at a position.
func (u *unpacked) stackAt(at int64) (sum int64) {
	for i, born := range u.births {
		if born < at && (u.lives[i] == 0 || born+u.lives[i] >= at) {
			sum += u.sizes[u.kinds[i]]
		}
	}
	return sum
}

func (u *unpacked) reservedAt(at int64) (sum int64) {
	for i, from := range u.segmentFrom {
		if from <= at && (u.segmentLife[i] == 0 || from+u.segmentLife[i] > at) {
			sum += u.high[i]
		}
	}
	return sum
}

// state is what an independent walk through a trace finds after each birth and death.
type state struct{ live, reserved, timeNS, row int64 }

// walk returns the states of the framework's allocator on a device.
func walk(t testing.TB, r *trace.Reader, device int32) []state {
	t.Helper()
	sizes, now := map[int64]int64{}, state{}
	all := []state{{}}
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if e.Device != device || e.Level != trace.LevelFramework {
			return nil
		}
		size, lives := sizes[e.ID]
		now.timeNS, now.row = e.TimeNS, row
		switch e.Op {
		case trace.OpAlloc:
			sizes[e.ID] = e.Size
			now.live += e.Size
			all = append(all, now)
		case trace.OpFree, trace.OpFreeCompleted:
			if lives {
				now.live -= size
				delete(sizes, e.ID)
				all = append(all, now)
			}
		case trace.OpSegmentAlloc, trace.OpSegmentMap:
			now.reserved += e.Size
			all[len(all)-1].reserved = now.reserved
		case trace.OpSegmentFree, trace.OpSegmentUnmap:
			now.reserved -= e.Size
			all[len(all)-1].reserved = now.reserved
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestStacks compares what the page stacks, at the peak and at random moments, with the live bytes that a walk through the trace finds.
func TestStacks(t *testing.T) {
	for _, name := range []string{
		"resnet152-V.parquet", "captures/oom.parquet", "captures/opt1.3b.parquet", "snapshots/gpt2-expandable.pickle.gz", "snapshots/streams.pickle.gz",
		"settings/two-devices.pickle.gz", "settings/pools-expandable.parquet", "settings/ring.pickle.gz",
	} {
		t.Run(name, func(t *testing.T) {
			file := tracetest.Read(t, testdata+name)
			r := read(t, file, name)
			framework := 0
			for _, p := range r.parts {
				if p.level != trace.LevelFramework {
					continue
				}
				framework++
				states, u := walk(t, tracetest.Open(t, file, name), p.device), unpack(t, p)
				if len(states) != len(u.times)+1 {
					t.Fatalf("%d events, want %d", len(u.times), len(states)-1)
				}
				peak, _ := p.peak()
				at, rng := []int64{0, int64(peak), int64(len(u.times))}, rand.New(rand.NewPCG(1, 2))
				for range 100 {
					at = append(at, rng.Int64N(int64(len(states))))
				}
				for _, at := range at {
					want := states[at]
					if got := u.stackAt(at); got != want.live {
						t.Errorf("position %d: %d bytes are stacked, %d live", at, got, want.live)
					}
					if got := u.reservedAt(at); got != want.reserved {
						t.Errorf("position %d: %d bytes are reserved, want %d", at, got, want.reserved)
					}
					if at > 0 && u.rows[at-1] != want.row {
						t.Errorf("position %d: row %d, want %d", at, u.rows[at-1], want.row)
					}
					if at > 0 && u.times[at-1] != (want.timeNS-p.startNS)/u.Tick {
						t.Errorf("position %d: at %d, want %d", at, u.times[at-1], (want.timeNS-p.startNS)/u.Tick)
					}
				}
				most := slices.MaxFunc(states, func(a, b state) int { return int(a.live>>10 - b.live>>10) })
				if got := u.stackAt(int64(peak)); got>>10 != most.live>>10 {
					t.Errorf("the peak is %d, want %d", got, most.live)
				}
			}
			if framework == 0 {
				t.Error("no part of the framework's allocator")
			}
		})
	}
}

// TestAddressesAreDisjoint: no two tensors that live at the same time share a byte, and each lies in a segment.
func TestAddressesAreDisjoint(t *testing.T) {
	for _, name := range []string{"resnet152-V.parquet", "snapshots/gpt2-expandable.pickle.gz", "settings/pools.parquet"} {
		u := unpack(t, read(t, tracetest.Read(t, testdata+name), name).parts[0])
		rng := rand.New(rand.NewPCG(3, 4))
		for range 20 {
			at := rng.Int64N(int64(len(u.times)) + 1)
			var live [][2]int64
			for i, born := range u.births {
				if born < at && (u.lives[i] == 0 || born+u.lives[i] >= at) && u.spots[i] > 0 {
					low := u.addresses[u.spots[i]-1]
					live = append(live, [2]int64{low, low + u.sizes[u.kinds[i]]})
				}
			}
			slices.SortFunc(live, func(a, b [2]int64) int { return int(a[0] - b[0]) })
			for i, block := range live {
				if i > 0 && block[0] < live[i-1][1] {
					t.Fatalf("%s: at %d, %x and %x overlap", name, at, live[i-1], block)
				}
				held := slices.ContainsFunc(slices.Collect(u.segmentsAt(at)), func(s [2]int64) bool { return s[0] <= block[0] && block[0] < s[1] })
				if !held {
					t.Fatalf("%s: at %d, %x is in no segment", name, at, block)
				}
			}
		}
	}
}

func (u *unpacked) segmentsAt(at int64) func(func([2]int64) bool) {
	return func(yield func([2]int64) bool) {
		for i, from := range u.segmentFrom {
			if from <= at && (u.segmentLife[i] == 0 || from+u.segmentLife[i] > at) && !yield([2]int64{u.segmentLow[i], u.segmentLow[i] + u.high[i]}) {
				return
			}
		}
	}
}

// TestMerge: of a part with too many tensors the largest are kept, and each band is as high as the others ever are in its stretch.
func TestMerge(t *testing.T) {
	file := tracetest.Read(t, testdata+"resnet152-V.parquet")
	p := read(t, file, "resnet").parts[0]
	whole := unpack(t, p)
	_, want := p.peak()
	const limit = 6000
	p.mergeSmallest(limit)
	u := unpack(t, p)
	if len(u.births) > limit+bands || p.merged != len(whole.births)-limit+bands {
		t.Errorf("%d tensors are left of %d, and %d merged", len(u.births), len(whole.births), p.merged)
	}
	smallest := slices.Sorted(slices.Values(sizesOf(whole)))[p.merged]
	label := int64(len(u.Labels) - 1)
	for i, kind := range u.kinds {
		if u.labels[kind] != label && u.sizes[kind] < smallest {
			t.Fatalf("tensor %d of %d bytes is kept, and one of %d is not", i, u.sizes[kind], smallest)
		}
	}
	peak, bytes := p.peak()
	if bytes < want || float64(bytes) > 1.02*float64(want) {
		t.Errorf("the peak is %d, of the whole trace %d", bytes, want)
	}
	if got := u.stackAt(int64(peak)); got != bytes {
		t.Errorf("%d bytes are stacked at the peak of %d", got, bytes)
	}
	if got, want := u.stackAt(int64(len(u.times))), whole.stackAt(int64(len(whole.times))); got < want {
		t.Errorf("%d bytes are stacked at the end, want at least %d", got, want)
	}
	if len(u.Sections) > 0 && int(u.Sections[len(u.Sections)-1].To.At) > len(u.times) {
		t.Errorf("an iteration ends at %d of %d", u.Sections[len(u.Sections)-1].To.At, len(u.times))
	}
}

// TestFit: parts share the tensors of a page; small parts are left alone, and bands count as tensors.
func TestFit(t *testing.T) {
	var parts []*part
	for i, n := range []int{30_000, 10, 9_000} {
		p := &part{kinds: []kind{{size: int64(i + 1), count: 1}}}
		for k := range n {
			p.tensors = append(p.tensors, tensor{born: int32(k), died: never})
			p.events = append(p.events, event{tensor: int32(k)})
		}
		parts = append(parts, p)
	}
	for range 2 {
		fit(parts, 20_000)
		if len(parts[1].tensors) != 10 || len(parts[2].tensors) != 9_000 || len(parts[0].tensors) > 20_000-9_010 || parts[0].merged < 19_000 {
			t.Errorf("%d, %d and %d tensors are left, %d merged", len(parts[0].tensors), len(parts[1].tensors), len(parts[2].tensors), parts[0].merged)
		}
	}
	_, bytes := parts[0].peak()
	if bytes != 30_000 {
		t.Errorf("%d bytes live at the end", bytes)
	}
}

func sizesOf(u *unpacked) []int64 {
	var all []int64
	for _, kind := range u.kinds {
		all = append(all, u.sizes[kind])
	}
	return all
}

// TestPacker: the numbers that the script unpacks are those that were packed.
func TestPacker(t *testing.T) {
	lists := [][]int64{{}, {0}, {5, -5, math.MaxInt64 / 4, 7, 7}, {1 << 52, -(1 << 52)}}
	var p Packer
	for _, list := range lists {
		p.Numbers(list)
	}
	p.Counts([]int64{3, 0, 1 << 40})
	p.Bytes([]byte{0, 255, 1})
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	in := inflate(t, text)
	for _, list := range lists {
		if got := in.numbers(); !slices.Equal(got, list) {
			t.Errorf("%v, expected %v", got, list)
		}
	}
	if got := in.counts(); !slices.Equal(got, []int64{3, 0, 1 << 40}) {
		t.Errorf("counts are %v", got)
	}
	if rest, _ := io.ReadAll(in); !bytes.Equal(rest, []byte{3, 0, 255, 1}) {
		t.Errorf("bytes are %v", rest)
	}
}

// TestSegments compares the segments over time with a table of who holds each byte.
func TestSegments(t *testing.T) {
	const bytes = 48
	ops := []trace.Op{trace.OpSegmentAlloc, trace.OpSegmentFree, trace.OpSegmentMap, trace.OpSegmentUnmap}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		p, open := &part{}, openSegments{}
		var held [][bytes]bool
		var now [bytes]bool
		for range 30 {
			e := trace.Event{Op: ops[rng.IntN(4)], Addr: 1 + rng.Uint64N(bytes-2)}
			e.Size = 1 + rng.Int64N(bytes-1-int64(e.Addr))
			open.add(p, &e, 0)
			for i := e.Addr; i < e.Addr+uint64(e.Size); i++ {
				now[i] = e.Op == trace.OpSegmentAlloc || e.Op == trace.OpSegmentMap
			}
			if rng.IntN(3) > 0 {
				held = append(held, now)
				p.events = append(p.events, event{})
			}
		}
		held = append(held, now)
		open.finish(p)
		for at, want := range held {
			var got [bytes]bool
			for _, s := range p.segments {
				for i := s.low; i < s.high && s.from <= int32(at) && (s.to == never || s.to > int32(at)); i++ {
					if got[i] {
						t.Fatalf("position %d: byte %d is in two segments", at, i)
					}
					got[i] = true
				}
			}
			if got != want {
				t.Fatalf("position %d: %v, want %v", at, got, want)
			}
		}
	}
}

// TestPools: the growth of the driver's memory pools is live, and what they give back is not.
func TestPools(t *testing.T) {
	const mib = 1 << 20
	driver := trace.LevelDriver
	file := write(t, []trace.Event{
		{TimeNS: 1, Op: trace.OpAlloc, ID: 1, Size: 5 * mib, Addr: 64 * mib, Level: driver, Tag: 1},
		{TimeNS: 2, Op: trace.OpSegmentAlloc, Size: 32 * mib, Level: driver, Tag: 2},
		{TimeNS: 3, Op: trace.OpAlloc, ID: 2, Size: 7 * mib, Addr: 96 * mib, Level: driver, Tag: 2},
		{TimeNS: 4, Op: trace.OpSegmentAlloc, Size: 32 * mib, Level: driver, Tag: 2},
		{TimeNS: 5, Op: trace.OpSegmentFree, Size: 48 * mib, Level: driver, Tag: 2},
		{TimeNS: 6, Op: trace.OpFree, ID: 1, Level: driver},
	}, "memory", "pool by=rmm")
	u := unpack(t, read(t, file, "pools").parts[0])
	end := int64(len(u.times))
	for at, want := range map[int64]int64{0: 0, 1: 5 * mib, 2: 37 * mib, 3: 69 * mib, end - 1: 21 * mib, end: 16 * mib} {
		if got := u.stackAt(at); got != want {
			t.Errorf("position %d: %d MiB, want %d", at, got/mib, want/mib)
		}
	}
}

// TestMoments: failures, marks and iterations are where they were recorded, and at the rows that gmtrace show names.
func TestMoments(t *testing.T) {
	file := tracetest.Read(t, testdata+"captures/oom.parquet")
	p := read(t, file, "oom").parts[0]
	u := unpack(t, p)
	if at, _ := p.peak(); p.rowAt(at) != 31263 || u.OOMs[len(u.OOMs)-1].Row != 31266 || u.Sections[0].From.Row != 1366 || u.Rows != 31271 {
		t.Errorf("the peak is at row %d, the last failure at %+v, the first iteration %+v of %d rows", p.rowAt(at), u.OOMs, u.Sections[0], u.Rows)
	}
	if len(u.OOMs) == 0 || u.OOMs[0].Size != 156<<20 || int(u.OOMs[0].At) < len(u.times)-100 || u.Capacity == 0 {
		t.Errorf("failures are %+v of %d events, the capacity is %d", u.OOMs, len(u.times), u.Capacity)
	}
	if len(u.Sections) < 5 {
		t.Errorf("%d iterations", len(u.Sections))
	}
	for i, s := range u.Sections {
		if s.From.At >= s.To.At || s.From.NS >= s.To.NS || s.From.Row >= s.To.Row || i > 0 && s.From.At < u.Sections[i-1].To.At {
			t.Errorf("iteration %d is %+v", i, s)
		}
	}
	if len(u.Marks) == 0 || u.Marks[0].Text == "" {
		t.Errorf("marks are %+v", u.Marks)
	}
}

// TestColors: a tag has the colour that pictures give it, and the driver's kinds have colours by their bytes.
func TestColors(t *testing.T) {
	r := read(t, tracetest.Read(t, testdata+"captures/oom.parquet"), "oom")
	for _, l := range unpack(t, r.parts[0]).Labels {
		if want := slices.Index(tags.Derived(), tags.TagOf(l.Name)); l.Color != want {
			t.Errorf("%s has colour %d, want %d", l.Name, l.Color, want)
		}
	}
	for _, l := range unpack(t, r.parts[1]).Labels {
		if want := map[string]int{"memory by=pytorch": 0, "context": 1}; l.Color != want[l.Name] && l.Color < 2 {
			t.Errorf("%s has colour %d", l.Name, l.Color)
		}
	}
	if c := report.AreaColor(5); !strings.Contains(Style(), fmt.Sprintf("--c5: #%02x%02x%02x;", c.R, c.G, c.B)) {
		t.Error("the page has other colours than pictures")
	}
}

func page(t testing.TB, r *Recording) string {
	t.Helper()
	var out bytes.Buffer
	if err := (&Page{Title: "test", Version: "devel", A: r}).Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPageIsTheSameAgain(t *testing.T) {
	file := tracetest.Read(t, testdata+"captures/opt1.3b.parquet")
	once := page(t, read(t, file, "x"))
	if page(t, read(t, file, "x")) != once {
		t.Error("two pages of one trace differ")
	}
	for _, foreign := range []string{"http:", "https:", "src=", "@import", "<link"} {
		if strings.Contains(once, foreign) {
			t.Errorf("the page has %q, so it may need the network", foreign)
		}
	}
}

// TestHostileNames: no name ends or begins a script, an attribute or a tag.
func TestHostileNames(t *testing.T) {
	const hostile = `"'></title></script><script>alert(1)</script><img src=x onerror=alert(2)>{{.Packed}}` + "`${alert(3)}`<!-- \u202e\u2028"
	file := write(t, []trace.Event{
		{TimeNS: 1, Op: trace.OpAlloc, ID: 1, Size: 1 << 20, Tag: 1, Stack: 1, Pool: 1},
		{TimeNS: 2, Op: trace.OpMark, Tag: 1},
		{TimeNS: 3, Op: trace.OpOOM, Size: 2 << 20, Stack: 1},
	}, hostile)
	r := read(t, file, hostile)
	r.Notes = []Note{{Text: report.Printable(hostile)}}
	text := page(t, r)
	for what, n := range map[string]int{"<script": 2, "</script": 2, "<img": 0, "<title": 1, "</title": 1, "<!--": 0, "\u202e": 0} {
		if got := strings.Count(text, what); got != n {
			t.Errorf("%q is there %d times, expected %d", what, got, n)
		}
	}
	if u := unpack(t, r.parts[0]); len(u.Frames) != 1 || strings.Contains(u.Frames[0], "\u202e") || u.Marks[0].Text == "" {
		t.Errorf("%+v", u.partData)
	}
}

func TestNothing(t *testing.T) {
	s := source(t, write(t, []trace.Event{{TimeNS: 1, Op: trace.OpMark}}), "marks")
	if _, err := ReadSource(s); err == nil || !strings.Contains(err.Error(), filepath.Base("marks")) {
		t.Errorf("a trace without allocations: %v", err)
	}
}
