package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
)

// rows is a handler that takes the dicts of the list "rows" out of a dict, and in them the lists "xs", which it
// replaces by tokens that count up.
type rows struct {
	d   *Decoder
	got []string
	xs  []string
}

const (
	roleTop Role = iota + 1
	roleRows
	roleRow
	roleXs
)

func (h *rows) Role(parent Role, key string, _ int, kind Kind) Role {
	switch {
	case parent == 0:
		return roleTop
	case parent == roleTop && key == "rows" && kind == List:
		return roleRows
	case parent == roleRows && kind == Dict:
		return roleRow
	case parent == roleRow && key == "xs":
		return roleXs
	}
	return 0
}

func (h *rows) Complete(role Role, v Value) (Value, error) {
	switch role {
	case roleRow:
		h.got = append(h.got, text(h.d, v))
		return 0, nil
	case roleXs:
		h.xs = append(h.xs, text(h.d, v))
		return MakeToken(uint64(len(h.xs))), nil
	case roleRows:
		if n := len(h.d.Items(v)); n > 0 {
			return 0, fmt.Errorf("%d rows were not handed over", n)
		}
	}
	return v, nil
}

func stream(t *testing.T, pickle string) (*rows, Value, error) {
	t.Helper()
	h := &rows{}
	h.d = NewDecoder(strings.NewReader(pickle), h)
	v, err := h.d.Decode()
	return h, v, err
}

// a and n are keys; the text of a is "61".
const (
	keyRows = "U\x04rows"
	keyXs   = "U\x02xs"
	keyA    = "U\x01a"
)

func TestStream(t *testing.T) {
	const row1, row2 = "}(" + keyA + "K\x01" + keyXs + "](K\x05K\x06eu", "}(" + keyA + "K\x02u"
	for _, c := range []struct{ name, rows, want string }{
		{"none", "]", ""},
		{"one by append", "]" + row2 + "a", `{"61":2}`},
		{"two by append", "]" + row1 + "a" + row2 + "a", `{"61":1,"7873":<1>} {"61":2}`},
		{"by appends", "](" + row1 + row2 + "e", `{"61":1,"7873":<1>} {"61":2}`},
		{"in batches", "](" + row1 + "e(" + row2 + row2 + "e" + row1 + "a", `{"61":1,"7873":<1>} {"61":2} {"61":2} {"61":1,"7873":<2>}`},
		{"by setitem", "]}" + keyA + "K\x01s" + keyXs + "]K\x05asa", `{"61":1,"7873":<1>}`},
		{"by dict", "((" + keyA + "K\x01dl", ""},
		{"numbered after", "](}(" + keyA + "K\x01uq\x09" + row2 + "e", `{"61":1} {"61":2}`},
		{"empty rows", "](}}}e", `{} {} {}`},
		{"shared list", "](}(" + keyXs + "]q\x07(K\x05eu}(" + keyXs + "h\x07ue", `{"7873":<1>} {"7873":<1>}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, top := range []string{
				"}(" + keyRows + c.rows + "U\x05after]K\x03au.",
				"}" + keyRows + c.rows + "s.",
				"}(U\x06before}U\x01x}s" + keyRows + c.rows + "u.",
				"}(U\x06before}" + keyRows + c.rows + "u.",
			} {
				h, _, err := stream(t, top)
				if c.name == "by dict" {
					if err == nil {
						t.Errorf("%q: rows were lost", top)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%q: %v", top, err)
				}
				if got := strings.Join(h.got, " "); got != c.want {
					t.Errorf("%q: rows %s, want %s", top, got, c.want)
				}
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	for _, c := range []struct{ name, rows, want string }{
		{"row used twice", "](}q\x05(" + keyA + "K\x01u}h\x05e", "memo entry 5, a record of a stream, is used twice"},
		{"row in itself", "](}q\x05(" + keyA + "h\x05ue", "holds itself"},
		{"changed later", "](}(" + keyXs + "]q\x05(K\x05eu}h\x05K\x07ae", "where a list is needed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := stream(t, "}("+keyRows+c.rows+"u."); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestHandlerError(t *testing.T) {
	boom := errors.New("boom")
	h := failing{boom}
	_, err := NewDecoder(strings.NewReader("]]a."), h).Decode()
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (failing) Role(Role, string, int, Kind) Role     { return 1 }
func (f failing) Complete(Role, Value) (Value, error) { return 0, f.err }

// TestStreamMemory decodes many rows under one mark: none may stay.
func TestStreamMemory(t *testing.T) {
	const n = 100_000
	row := "}\x94(" + keyA + "K\x01" + keyXs + "]\x94U\x01pK\x01K\x02\x86\x94u"
	h, _, err := stream(t, "}("+keyRows+"]("+strings.Repeat(row, n)+"eu.")
	if err != nil {
		t.Fatal(err)
	}
	if len(h.got) != n || len(h.d.objects) > 10 || cap(h.d.stack) > 100 {
		t.Errorf("%d rows, %d objects, %d values of stack", len(h.got), len(h.d.objects), cap(h.d.stack))
	}
	if beside := h.d.budget.most - 4*3*n; beside > 100<<10 {
		t.Errorf("%d bytes are held beside the memo", beside)
	}
	if h.d.memo.used != 3*n || len(h.d.memo.spilled) > 0 {
		t.Errorf("memo of %d entries, %d spilled", h.d.memo.used, len(h.d.memo.spilled))
	}
}

// randomly is a handler that decides by chance.
type randomly struct {
	d   *Decoder
	rnd *rand.Rand
}

func (h *randomly) Role(Role, string, int, Kind) Role { return Role(h.rnd.IntN(3)) }

func (h *randomly) Complete(_ Role, v Value) (Value, error) {
	for _, item := range h.d.Items(v) {
		h.d.Int64(item)
		h.d.Text(item)
	}
	switch h.rnd.IntN(3) {
	case 0:
		return v, nil
	case 1:
		return MakeToken(h.rnd.Uint64()), nil
	}
	return 0, nil
}

// allocated returns the bytes that the process has allocated so far, freed ones included.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// FuzzDecode holds a decode to what it may allocate in all for each byte of its input, and the tables to their budget.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.pickle")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4000)], uint64(1))
	}
	for _, rows := range []string{"](}(U\x01aK\x01uq\x09}e", "](}q\x05(U\x01ah\x05ue", "(dp0\n(lp1\nI1\nas."} {
		f.Add([]byte("}(U\x04rows"+rows+"u."), uint64(2))
	}
	for _, part := range []string{"G12345678", "\x8a\x09123456789", "]0", "K\x01\x85", "U\x01a\x94"} {
		f.Add([]byte(strings.Repeat(part, 50)+"."), uint64(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		before := allocated()
		decodeBoth(t, data, seed)
		const fixed, each = 4 << 20, 1 << 10
		if took := allocated() - before; took > fixed+each*uint64(len(data)) {
			t.Fatalf("%d bytes allocated for %d", took, len(data))
		}
	})
}

// decodeBoth decodes data without a handler and with one that decides by chance.
func decodeBoth(t *testing.T, data []byte, seed uint64) {
	for _, h := range []*randomly{nil, {rnd: rand.New(rand.NewPCG(seed, seed))}} {
		d := NewDecoder(bytes.NewReader(data), nil)
		if h != nil {
			d.handler, h.d = h, d
		}
		v, err := d.Decode()
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error of another type: %v", err)
		}
		if err == nil {
			d.Items(v)
			d.Text(v)
		}
		if held := heldBy(d); held > d.budget.used {
			t.Fatalf("the tables take %d bytes, %d are charged", held, d.budget.used)
		}
		if d.memo.used > len(data) || len(d.objects) > len(data) {
			t.Fatalf("%d memo entries, %d objects of %d bytes", d.memo.used, len(d.objects), len(data))
		}
	}
}

// heldBy adds up what the tables of a decoder take, maps with no overhead.
func heldBy(d *Decoder) int64 {
	held := 8*cap(d.stack) + 8*cap(d.marks) + 40*cap(d.objects) + 8*cap(d.floats) + 16*cap(d.wide)
	for _, o := range d.objects {
		held += 8 * cap(o.items)
	}
	for _, page := range d.memo.pages {
		held += 4 * cap(page)
	}
	held += 24*cap(d.memo.pages) + 8*cap(d.memo.spilled) + 32*len(d.tuples)
	for _, text := range d.texts.list {
		held += 16 + 24 + len(text)
	}
	return int64(held)
}
