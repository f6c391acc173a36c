package pickle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rows is a handler that takes the dicts of the list "rows" out of a dict, and in them the lists "xs", which it
// replaces by tokens that count up.
type rows struct {
	d    *Decoder
	got  []string
	xs   []string
	most int // values held in containers at once
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
	h.most = max(h.most, h.d.values)
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
	if len(h.got) != n || len(h.d.objects) > 10 || cap(h.d.stack) > 100 || h.most > 20 {
		t.Errorf("%d rows, %d objects, %d values of stack, %d in containers", len(h.got), len(h.d.objects), cap(h.d.stack), h.most)
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
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		for _, h := range []*randomly{nil, {rnd: rand.New(rand.NewPCG(seed, seed))}} {
			var d *Decoder
			if h == nil {
				d = NewDecoder(strings.NewReader(string(data)), nil)
			} else {
				d = NewDecoder(strings.NewReader(string(data)), h)
				h.d = d
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
			if d.values < 0 || d.memo.used > len(data) || len(d.objects) > len(data) {
				t.Fatalf("%d values, %d memo entries, %d objects of %d bytes", d.values, d.memo.used, len(d.objects), len(data))
			}
		}
	})
}
