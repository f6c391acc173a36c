package snapshot

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/formats/column"
	"gm/formats/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// imported is a trace that was made from a snapshot and read back.
type imported struct {
	rows     []string
	meta     trace.Meta
	warnings []string
}

func importBytes(t testing.TB, name string, data []byte) (*imported, error) {
	t.Helper()
	got := &imported{}
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{})
	err := Import(bytes.NewReader(data), name, w, func(s string) { got.warnings = append(got.warnings, s) })
	if err != nil {
		return nil, err
	}
	readBack(t, w, &file, got)
	return got, nil
}

// readBack closes a trace and reads it into got.
func readBack(t testing.TB, w *trace.Writer, file *bytes.Buffer, got *imported) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	got.meta = r.Meta()
	for {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			e := b.Row(i)
			texts := r.Strings()
			got.rows = append(got.rows, fmt.Sprintf("%d %v id=%d size=%d addr=%#x dev=%d stream=%d pool=%q stack=%q tag=%q",
				e.TimeNS, e.Op, e.ID, e.Size, e.Addr, e.Device, e.Stream, texts.Text(e.Pool), texts.Text(e.Stack), texts.Text(e.Tag)))
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func importFile(t testing.TB, name string) *imported {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	got, err := importBytes(t, name, data)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (g *imported) String() string {
	return fmt.Sprintf("conf %s\n%s\nwarnings:\n%s\n", g.meta.AllocConf, strings.Join(g.rows, "\n"), strings.Join(g.warnings, "\n"))
}

func TestImport(t *testing.T) {
	// Each of the files of a line holds the same snapshot.
	for golden, files := range map[string][]string{
		"small.golden": {
			"small-p0.pickle", "small-p1.pickle", "small-p2.pickle", "small-p3.pickle", "small-p4.pickle",
			"small-p5.pickle", "small-cpp.pickle",
		},
		"old.golden":      {"old.pickle"},
		"odd.golden":      {"odd.pickle"},
		"segments.golden": {"segments.pickle"},
		"list.golden":     {"list.pickle"},
	} {
		for _, name := range files {
			t.Run(name, func(t *testing.T) {
				got := importFile(t, name)
				if got.meta.Source != "pytorch snapshot "+name || got.meta.Alignment != 512 {
					t.Errorf("meta is %+v", got.meta)
				}
				compareGolden(t, golden, got.String())
			})
		}
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
}

// TestWrapped imports a history whose beginning was overwritten. What was there where the rest of it begins is known
// from the simulation that made the file.
func TestWrapped(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "wrapped.want"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	all := importFile(t, "wrapped.pickle")
	for _, row := range all.rows {
		var ns, id, size, device, stream int64
		var op string
		var addr uint64
		if !strings.Contains(row, trace.PreexistingTag(0)) {
			continue
		}
		if _, err := fmt.Sscanf(row, "%d %s id=%d size=%d addr=%v dev=%d stream=%d", &ns, &op, &id, &size, &addr, &device, &stream); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&got, op, addr, size, stream)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("initial state differs (-want +got):\n%s", diff)
	}
	if len(all.warnings) > 0 {
		t.Errorf("warnings: %q", all.warnings)
	}
}

func TestImportErrors(t *testing.T) {
	for _, c := range []struct{ name, pickle, want string }{
		{"empty", "", "pickle: byte 0: the pickle is cut off"},
		{"other dict", "\x80\x04}(K\x01K\x02K\x03K\x04u.", "neither segments nor device_traces"},
		{"other list", "(lp0\nI1\na.", "holds an int"},
		{"a number", "I1\n.", "an int is not a memory snapshot"},
		{"code", "cos\nsystem\n(S'id'\ntR.", "refused: the pickle calls os.system"},
		{"no address", "(dS'device_traces'\n(l(l(dS'action'\nS'alloc'\nsaas.", "device_traces[0][0]: alloc without address or size"},
		{"size", "(dS'device_traces'\n(l(l(dS'size'\nI-1\nsaas.", "device_traces[0][0]: size is -1"},
		{"huge", "(dS'device_traces'\n(l(l(dS'action'\nS'oom'\nsS'size'\nL4611686018427387904L\nsS'device_free'\nI0\nsaas.", "oom of 4611686018427387904 bytes"},
		{"time", "(dS'device_traces'\n(l(l(dS'time_us'\nF0.5\nsaas.", "time_us is a float"},
		{"list in trace", "(dS'device_traces'\n(l(lI3\naas.", "a list of dicts holds an int"},
		{"frames", "(dS'device_traces'\n(l(l(dS'frames'\nI3\nsaas.", "frames is an int"},
		{"segment", "(dS'segments'\n(l(dS'address'\nL18446744073709551615L\nsS'total_size'\nI2\nsas.", "segments[0]: address 18446744073709551615 and size 2"},
		{"block", "(dS'segments'\n(l(dS'address'\nI0\nsS'blocks'\n(l(dS'size'\nI9\nsasas.", "segments[0]: blocks[0], 9 bytes at 0, lies outside of it"},
		{"device", "(dS'segments'\n(l(dS'address'\nI0\nsS'device'\nI5000\nsas.", "segments[0]: device 5000"},
		{"traces in a dict", "(dS'device_traces'\n(ds.", "device_traces is a dict or a tuple of one, expected a list"},
		{"a tuple of a dict", "(dS'segments'\n((dtp0\ns.", "segments is a tuple, expected a list"},
		{"blocks in a dict", "(dS'segments'\n(l(dS'address'\nI0\nsS'total_size'\nI9\nsS'blocks'\n(dsas.", "blocks is a dict or a tuple of one, expected a list"},
		{"trace twice", "(dS'device_traces'\n(l(lp1\n(dS'action'\nS'oom'\nsS'size'\nI1\nsS'device_free'\nI0\nsaag1\nas.", "memo entry 1, a list of records, is used twice"},
		{"mark", "(dS'segments'\n(lsS'external_annotations'\n(l(dS'time_us'\nS'x'\nsas.", "external_annotations[0]: time_us is a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := importBytes(t, "x.pickle", []byte(c.pickle))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// TestTruncated cuts a snapshot at every byte.
func TestTruncated(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "small-p4.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) {
		if _, err := importBytes(t, "x.pickle", data[:n]); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Fatalf("%d bytes of %d: %v", n, len(data), err)
		}
	}
}

func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*.pickle")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 10_000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(allocated)
		before := allocated[0].Value.Uint64()
		got, err := importBytes(t, "x.pickle", data)
		metrics.Read(allocated)
		if took := allocated[0].Value.Uint64() - before; took > 64<<20+uint64(len(data))<<12 {
			t.Errorf("%d bytes allocated for %d", took, len(data))
		}
		if err == nil && len(got.rows) > 2*len(data) {
			t.Errorf("%d rows of %d bytes", len(got.rows), len(data))
		}
	})
}

// TestPoolBound gives the events of a snapshot more pools than an import holds, and values in the place of pools, of which none is kept.
func TestPoolBound(t *testing.T) {
	snapshotOf := func(pool func(i int) string) string {
		var b strings.Builder
		b.WriteString("}(X\x0d\x00\x00\x00device_traces](](")
		for i := range maxPools + 1 {
			fmt.Fprintf(&b, "}(U\x06actionU\x05allocU\x04addrJ\x00\x00\x10\x00U\x04sizeM\x00\x02U\x0fsegment_pool_id%su", pool(i))
		}
		return b.String() + "eeu."
	}
	number := func(i int) string { return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(i))) }
	read := func(pickle string) (*recording, error) {
		r := newRecording(column.NewStrings())
		t.Cleanup(func() { _ = r.close() })
		_, err := decode(strings.NewReader(pickle), r, r)
		return r, err
	}
	if _, err := read(snapshotOf(func(i int) string { return number(i) + "K\x01\x86" })); err == nil || !strings.Contains(err.Error(), "more than 65536 pools") {
		t.Errorf("error %v", err)
	}
	r, err := read(snapshotOf(number))
	if err != nil || r.texts.Len() != 1 {
		t.Errorf("%d texts, %v", r.texts.Len(), err)
	}
}

// TestSettingsTwice sets settings twice: a dict has the last of them.
func TestSettingsTwice(t *testing.T) {
	const text = "U\x17PYTORCH_CUDA_ALLOC_CONFU"
	settings := "}(" + text + "\x05a:1,b" + text + "\x07c:1,d:2U\x0emax_split_size\x8a\x04\x00\x00\x00\x05U\x0emax_split_sizeJ\x00\x00\x00\x02u"
	pickle := "}(U\x08segments]U\x12allocator_settings}U\x12allocator_settings" + settings + "u."
	got, err := importBytes(t, "x.pickle", []byte(pickle))
	if want := "c:1,d:2,max_split_size_mb:32"; err != nil || got.meta.AllocConf != want {
		t.Errorf("%q, %v, want %q", got.meta.AllocConf, err, want)
	}
}
