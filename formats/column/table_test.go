package column

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gm/formats/column/columntest"
)

// sample is a batch with a column of each kind.
type sample struct {
	time  []int64
	size  []int64
	addr  []uint64
	small []int32
	text  []int32
	color []int8
}

type sampleMeta struct {
	name  string
	count int64
	yes   bool
	list  []string
}

// sampleRules refuses a size of 13.
type sampleRules struct{ row int }

func (r *sampleRules) Check(b *sample) error {
	for _, v := range b.size {
		if v == 13 {
			return fmt.Errorf("row %d: size 13", r.row)
		}
		r.row++
	}
	return nil
}

func (r *sampleRules) Close() error { return nil }

type noRules struct{}

func (noRules) Check(*sample) error { return nil }
func (noRules) Close() error        { return nil }

func sampleTable() *Table[sample, sampleMeta] {
	return &Table[sample, sampleMeta]{
		Schema: Schema{Name: "sample", Major: 2, Minor: 1},
		Fields: func(b *sample) []Field {
			return []Field{
				Monotone("time", &b.time), Int64("size", &b.size), Uint64("addr", &b.addr), Int32("small", &b.small),
				Text("text", &b.text), Enum("color", &b.color, []string{"red", "green"}),
			}
		},
		Entries: func(m *sampleMeta) []Entry {
			return []Entry{{"name", &m.name}, {"count", &m.count}, {"yes", &m.yes}, {"list", &m.list}}
		},
		Rules: func(m *sampleMeta) (Rules[sample], error) {
			if m.count < 0 {
				return nil, fmt.Errorf("count %d", m.count)
			}
			return &sampleRules{}, nil
		},
	}
}

// TestAdded reads a file that is older than two of the columns.
func TestAdded(t *testing.T) {
	table := sampleTable()
	var out bytes.Buffer
	w := table.NewWriter(&out, sampleMeta{})
	b := &sample{}
	b.add(1, 2, 3, 4, 0, 1)
	b.add(5, 6, 7, 8, 0, 0)
	if err := errors.Join(w.Write(b), w.Close()); err != nil {
		t.Fatal(err)
	}
	var origin []int64
	var small []int32
	table.Fields = func(b *sample) []Field {
		return []Field{Monotone("time", &b.time), Int64("size", &b.size).Added(9), Int64("origin", &origin).Added(-1), Int32("later", &small).Added(7)}
	}
	r, err := table.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "x")
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{-1, -1}; !slices.Equal(origin, want) || !slices.Equal(small, []int32{7, 7}) {
		t.Errorf("added columns %v and %v", origin, small)
	}
	if !slices.Equal(got.size, []int64{2, 6}) {
		t.Errorf("sizes %v of a file that has them", got.size)
	}
}

func (b *sample) add(time, size int64, addr uint64, small, text int32, color int8) {
	b.time, b.size, b.addr = append(b.time, time), append(b.size, size), append(b.addr, addr)
	b.small, b.text, b.color = append(b.small, small), append(b.text, text), append(b.color, color)
}

// encode writes the batch as a file.
func encode(t *testing.T, b *sample, texts []string, meta sampleMeta) []byte {
	t.Helper()
	return encodeAs(t, sampleTable(), b, texts, meta)
}

func encodeAs(t *testing.T, table *Table[sample, sampleMeta], b *sample, texts []string, meta sampleMeta) []byte {
	t.Helper()
	var out bytes.Buffer
	w := table.NewWriter(&out, meta)
	for _, text := range texts {
		w.Strings().Code(text)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// decode reads a file to its end. The text of each row is given by the strings.
func decode(file []byte) (all sample, texts []string, err error) {
	r, err := sampleTable().NewReader(bytes.NewReader(file), int64(len(file)), "x")
	if err != nil {
		return all, nil, err
	}
	for {
		b, err := r.Next()
		if err == io.EOF {
			return all, texts, r.Close()
		}
		if err != nil {
			return all, texts, err
		}
		if cap(b.time) != len(b.time) {
			return all, texts, errors.New("room behind the batch")
		}
		all.time, all.size, all.addr = append(all.time, b.time...), append(all.size, b.size...), append(all.addr, b.addr...)
		all.small, all.color = append(all.small, b.small...), append(all.color, b.color...)
		for _, code := range b.text {
			texts = append(texts, r.Strings().Text(code))
		}
	}
}

// TestMetadataIsUTF8 checks that metadata that is not UTF-8 is written as other readers accept it.
func TestMetadataIsUTF8(t *testing.T) {
	file := encode(t, new(sample), nil, sampleMeta{name: "a\xff\xc2b"})
	r, err := sampleTable().NewReader(bytes.NewReader(file), int64(len(file)), "x")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Meta().name, "a\uFFFDb"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every value survives a round trip, for any kind of column, distribution and number of rows.
func TestValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	texts := []string{"", "a", strings.Repeat("long ", 1000), "ü", "\x00"}
	for _, n := range []int{0, 1, 7, 129, pageRows, pageRows + 1, groupRows + 5} {
		b := &sample{}
		for i := range n {
			// Addresses never repeat, so that the larger files abandon their dictionary.
			b.add(rng.Int64()-math.MaxInt64/2, rng.Int64N(40)+20, rng.Uint64(), rng.Int32()>>rng.IntN(31), int32(i%5), int8(i&1))
		}
		got, gotTexts, err := decode(encode(t, b, texts, sampleMeta{}))
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		if !slices.Equal(got.time, b.time) || !slices.Equal(got.size, b.size) || !slices.Equal(got.addr, b.addr) ||
			!slices.Equal(got.small, b.small) || !slices.Equal(got.color, b.color) {
			t.Errorf("%d rows: not the same", n)
		}
		for i, text := range gotTexts {
			if text != texts[i%5] {
				t.Fatalf("%d rows: row %d: %.20q, want %.20q", n, i, text, texts[i%5])
			}
		}
	}
}

// Large strings end row groups early, so that no dictionary is larger than readers accept.
func TestLargeTexts(t *testing.T) {
	b := &sample{}
	var texts []string
	for i := range 300 {
		texts = append(texts, strings.Repeat("x", 1000*i)+"\xff")
		b.add(0, 0, 0, 0, int32(i+1), 0)
	}
	file := encode(t, b, texts, sampleMeta{})
	_, got, err := decode(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != strings.ToValidUTF8(texts[i], "\uFFFD") {
			t.Fatalf("row %d: %d bytes, want %d", i, len(got[i]), len(texts[i]))
		}
	}
	f, err := readFooter(bytes.NewReader(file), int64(len(file)))
	if err != nil || len(f.groups) < 5 {
		t.Errorf("%d row groups for 45 MB of strings: %v", len(f.groups), err)
	}
}

func TestWriterRefuses(t *testing.T) {
	long := strings.Repeat("x", MaxText+1)
	for name, c := range map[string]struct {
		change func(*sample)
		want   string
	}{
		"a rule is broken":       {func(b *sample) { b.size[2] = 13 }, "write sample: row 2: size 13"},
		"no such code":           {func(b *sample) { b.text[1] = 9 }, "write sample: row 1: text 9 stands for no string"},
		"negative code":          {func(b *sample) { b.text[1] = -1 }, "write sample: row 1: text -1 stands for no string"},
		"no such name":           {func(b *sample) { b.color[2] = 2 }, "write sample: row 2: color 2 stands for no string"},
		"too long a text":        {func(b *sample) { b.text[0] = 1 }, "write sample: row 0: text of 1048577 bytes, more than 1048576"},
		"columns of two lengths": {func(b *sample) { b.addr = b.addr[1:] }, "write sample: BUG: 2 rows of addr, 3 of time"},
	} {
		t.Run(name, func(t *testing.T) {
			w := sampleTable().NewWriter(io.Discard, sampleMeta{})
			w.Strings().Code(long)
			b := &sample{}
			for range 3 {
				b.add(0, 0, 0, 0, 0, 0)
			}
			c.change(b)
			if got := message(w.Write(b)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got := message(w.Close()); got != c.want {
				t.Errorf("close: %s, want %s", got, c.want)
			}
		})
	}
}

func TestWriterPassesErrorsOn(t *testing.T) {
	w := sampleTable().NewWriter(failing{}, sampleMeta{})
	if got := message(w.Close()); got != "write sample: disk full" {
		t.Error(got)
	}
	w = sampleTable().NewWriter(io.Discard, sampleMeta{count: -1})
	if got := message(w.Close()); got != "write sample: metadata: count -1" {
		t.Error(got)
	}
	w = sampleTable().NewWriter(io.Discard, sampleMeta{})
	if err := errors.Join(w.Close(), w.Write(&sample{})); message(err) != "write sample: closed already" {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestMetadata(t *testing.T) {
	want := sampleMeta{name: "n\"1", count: math.MaxInt64, yes: true, list: []string{"a", "", `b"`}}
	file := encode(t, &sample{}, nil, want)
	r, err := sampleTable().NewReader(bytes.NewReader(file), int64(len(file)), "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Meta(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if digest, err := r.Digest(); err != nil || len(digest) != 64 {
		t.Errorf("digest %q: %v", digest, err)
	}
	if kind, err := Kind(bytes.NewReader(file), int64(len(file))); err != nil || kind != "sample" {
		t.Errorf("kind %q: %v", kind, err)
	}
}

// TestReaderRefuses replaces bytes of a good file by as many others.
func TestReaderRefuses(t *testing.T) {
	b := &sample{}
	for i := range int64(20) {
		b.add(i, i, 0, 0, 1, 0)
	}
	lawless := sampleTable()
	lawless.Rules = func(*sampleMeta) (Rules[sample], error) { return noRules{}, nil }
	file := encodeAs(t, lawless, b, []string{"text of a row"}, sampleMeta{name: "n", count: 7, list: []string{"a"}})
	for name, c := range map[string]struct {
		old, new string
		want     string
	}{
		"newer":           {"gm.version\x18\x032.1", "gm.version\x18\x033.0", "sample x: version 3.0 is newer than this program, which reads up to 2"},
		"newer by little": {"gm.version\x18\x032.1", "gm.version\x18\x032.9", "sample x: row 13: size 13"},
		"older":           {"gm.version\x18\x032.1", "gm.version\x18\x031.0", "sample x: row 13: size 13"},
		"no version":      {"gm.version\x18\x032.1", "gm.version\x18\x03x.1", `sample x: corrupt: version "x.1"`},
		"other schema":    {"gm.schema\x18\x06sample", "gm.schema\x18\x06simple", "sample x: this is a simple, not a sample"},
		"foreign":         {"gm.schema\x18", "no.schema\x18", "sample x: not written by gm: no gm.schema in its metadata"},
		"no such column":  {"\x18\x05small", "\x18\x05smell", "sample x: no column small"},
		"bad number":      {"gm.count\x18\x017", "gm.count\x18\x01x", `sample x: corrupt: metadata gm.count: strconv.ParseInt: parsing "x": invalid syntax`},
		"bad metadata":    {"gm.count\x18\x017", "gm.count\x18\x01-", `sample x: corrupt: metadata gm.count: strconv.ParseInt: parsing "-": invalid syntax`},
		"bad list":        {`["a"]`, `["a"}`, "sample x: corrupt: metadata gm.list: invalid character '}' after array element"},
		"no magic":        {"PAR1\x15", "PAR2\x15", "sample x: not a Parquet file"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := bytes.Replace(file, []byte(c.old), []byte(c.new), 1)
			if bytes.Equal(changed, file) {
				t.Fatalf("no %q in the file", c.old)
			}
			if _, _, err := decode(changed); message(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":     {nil, "sample x: nothing in it"},
		"text":      {[]byte("time,size\n1,2\n"), "sample x: not a Parquet file"},
		"pickle":    {[]byte("\x80\x02}q\x00(X\x08\x00\x00\x00segments"), "sample x: no Parquet file but a pickle, such as a snapshot of PyTorch: only commands that take a trace read it"},
		"gzip":      {[]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00"), "sample x: no Parquet file but compressed by gzip: only commands that take a trace read it"},
		"short":     {[]byte("PAR1"), "sample x: corrupt: truncated, or no Parquet file at all"},
		"truncated": {file[:len(file)-1], "sample x: corrupt: truncated, or no Parquet file at all"},
		"footer longer than the file": {
			append(binary.LittleEndian.AppendUint32([]byte("PAR1"), 1000), magic...), "sample x: corrupt: footer of 1000 bytes in a file of 12",
		},
		"row groups on top of each other": {doubled(t, file), "sample x: corrupt: footer: row group 1: columns of more bytes than the file has"},
		"page damaged":                    {flipped(file, 40), "sample x: corrupt: column time: page checksum is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := decode(c.file); message(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// doubled returns the file with its one row group listed twice.
func doubled(t *testing.T, file []byte) []byte {
	t.Helper()
	footer, err := columntest.Footer(file)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := columntest.Split(file)
	footer.RowGroups = append(footer.RowGroups, footer.RowGroups[0])
	footer.NumRows *= 2
	out, err := columntest.WithFooter(data, footer)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func flipped(file []byte, at int) []byte {
	out := slices.Clone(file)
	out[at] ^= 1
	return out
}

// TestRange reads the least and the most time from the footer, over all row groups. Of other columns it says nothing.
func TestRange(t *testing.T) {
	read := func(times ...int64) *Reader[sample, sampleMeta] {
		var buf bytes.Buffer
		w := sampleTable().NewWriter(&buf, sampleMeta{})
		for i, at := range times {
			var b sample
			b.add(at, int64(i), 1, 1, 0, 0)
			if err := errors.Join(w.Write(&b), w.flushGroup()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := sampleTable().NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()), "ranged")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		times       []int64
		least, most int64
		ok          bool
	}{{nil, 0, 0, false}, {[]int64{-5}, -5, -5, true}, {[]int64{7, 3, 1 << 62, 40}, 3, 1 << 62, true}} {
		if least, most, ok := read(c.times...).Range("time"); least != c.least || most != c.most || ok != c.ok {
			t.Errorf("%d: %d to %d, %v", c.times, least, most, ok)
		}
	}
	for _, name := range []string{"size", "none"} {
		if _, _, ok := read(1, 2).Range(name); ok {
			t.Errorf("column %s has a range", name)
		}
	}
}
