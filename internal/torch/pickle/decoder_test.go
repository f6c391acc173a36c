package pickle

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// text returns a value as generate.py writes it.
func text(d *Decoder, v Value) string {
	var parts []string
	switch v.Kind() {
	case None:
		return "None"
	case Bool:
		return map[bool]string{true: "True", false: "False"}[v.True()]
	case Int:
		if n, ok := d.Int64(v); ok {
			return fmt.Sprint(n)
		}
		if n, ok := d.Uint64(v); ok {
			return fmt.Sprint(n)
		}
		return "huge"
	case Float:
		f, _ := d.Float64(v)
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%g", f), "+"))
	case Str, Bytes:
		return `"` + hex.EncodeToString([]byte(d.Text(v))) + `"`
	case Token:
		return fmt.Sprintf("<%d>", v.Token())
	case Dict:
		items := d.Items(v)
		for i := 0; i < len(items); i += 2 {
			parts = append(parts, text(d, items[i])+":"+text(d, items[i+1]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for _, item := range d.Items(v) {
		parts = append(parts, text(d, item))
	}
	if v.Kind() == Tuple {
		return "(" + strings.Join(parts, ",") + ")"
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func TestValues(t *testing.T) {
	for protocol, golden := range []int{0, 0, 0, 3, 4, 4} {
		name := fmt.Sprintf("testdata/values-p%d.pickle", protocol)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(fmt.Sprintf("testdata/values-p%d.golden", golden))
			if err != nil {
				t.Fatal(err)
			}
			for how, r := range map[string]io.Reader{
				"whole":        bytes.NewReader(data),
				"byte by byte": iotest.OneByteReader(bytes.NewReader(data)),
			} {
				d := NewDecoder(r, nil)
				v, err := d.Decode()
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				got := strings.ReplaceAll(text(d, v), ",", ",\n") + "\n"
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
				if d.Offset() != int64(len(data)) {
					t.Errorf("%s: offset %d of %d", how, d.Offset(), len(data))
				}
			}
		})
	}
}

func TestUint64(t *testing.T) {
	d := NewDecoder(strings.NewReader("\x80\x02]("+
		"J\xff\xff\xff\xff"+ // -1
		"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"+ // -2^63
		"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff"+ // -2^64
		"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"+ // 2^64-1
		"\x8a\x00"+ // 0
		"e."), nil)
	v, err := d.Decode()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"18446744073709551615 true", "9223372036854775808 true", "0 false", "18446744073709551615 true", "0 true"}
	for i, item := range d.Items(v) {
		n, ok := d.Uint64(item)
		if got := fmt.Sprint(n, ok); got != want[i] {
			t.Errorf("%d: %s, want %s", i, got, want[i])
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, pickle, want string }{
		{"empty", "", "byte 0: the pickle is cut off"},
		{"no value", ".", "byte 0: the pickle ends with nothing on its stack"},
		{"only a mark", "(.", "byte 1: the pickle ends with nothing on its stack"},
		{"cut int", "J\x00", "cut off"},
		{"cut line", "I12", "cut off"},
		{"no stop", "N", "cut off"},
		{"huge string", "X\xff\xff\xff\xff", "a string of 4294967295 bytes"},
		{"huge string 8", "\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "a string of 18446744073709551615 bytes"},
		{"huge bytes", "\x8e\x00\x00\x00\x00\x01\x00\x00\x00", "a string of 4294967296 bytes"},
		{"huge long", "\x8b\xff\xff\xff\xff", "cut off"},
		{"memo unset", "h\x05.", "memo entry 5 is not set"},
		{"memo far", "Nr\xff\xff\xff\xff.", "memo entry 4294967295 is out of range"},
		{"memo far text", "Np4294967296\n.", `"4294967296" is no memo entry`},
		{"memo of nothing", "q\x00.", "memo entry 0 of an empty stack"},
		{"underflow append", "]a.", "too few values"}, // the list itself is taken for the element
		{"underflow setitem", "}Ns.", "too few values"},
		{"underflow tuple", "N\x87.", "too few values"},
		{"underflow pop", "0.", "too few values"},
		{"underflow dup", "2.", "too few values"},
		{"underflow mark", "](a.", "too few values"},
		{"no mark", "]e.", "no mark"},
		{"append to an int", "K\x01Na.", "an int where a list is needed"},
		{"items to a list", "](NNu.", "a list where a dict is needed"},
		{"odd items", "}(Nu.", "a key without a value"},
		{"odd dict", "(Nd.", "a key without a value"},
		{"protocol", "\x80\x06.", "protocol 6; at most 5 is known"},
		{"opcode", "\xff.", "unknown opcode 0xff"},
		{"int", "Ix\n.", `"x" is no integer`},
		{"float", "Fx\n.", `"x" is no float`},
		{"quotes", "S'x\n.", "a string without quotes"},
		{"call", "cposix\nsystem\n(Vid\ntR.", "refused: the pickle calls posix.system"},
		{"call 4", "\x8c\x02os\x8c\x06system\x93)R.", "refused: the pickle calls os.system"},
		{"call of nothing", "N)R.", "refused: the pickle calls something without a name"},
		{"newobj", "cmod\nClass\n)\x81.", "refused: the pickle builds an object of mod.Class"},
		{"inst", "(imod\nClass\n.", "refused: the pickle builds an object"},
		{"build", "cm\nC\n}b.", "refused: the pickle builds an object of m.C"},
		{"ordered dict with items", "ccollections\nOrderedDict\n(]tR.", "refused: the pickle calls collections.OrderedDict"},
		{"global name", "NN\x93.", "a global whose name is None"},
		{"persistent", "P1\n.", "refused: a persistent id"},
		{"extension", "\x82\x01.", "refused: an entry of the extension registry"},
		{"buffer", "\x97.", "refused: an out-of-band buffer"},
		{"control in a name", "ca\tb\nc\n)R.", "calls a?b.c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewDecoder(strings.NewReader(c.pickle), nil).Decode()
			var e *Error
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &e) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestLongText reads a string that is longer than the buffer.
func TestLongText(t *testing.T) {
	const n = 3*bufferSize + 5
	for _, pickle := range []string{
		fmt.Sprintf("X%s%s.", "\x05\x00\x0c\x00", strings.Repeat("x", n)),
		fmt.Sprintf("V%s\n.", strings.Repeat("x", n)),
	} {
		d := NewDecoder(strings.NewReader(pickle), nil)
		v, err := d.Decode()
		if err != nil || d.Text(v) != strings.Repeat("x", n) {
			t.Errorf("%d bytes, %v", len(d.Text(v)), err)
		}
	}
}

// TestLimits feeds pickles that would need memory without end to a decoder that may take 1 MiB.
func TestLimits(t *testing.T) {
	const over = "it takes more than 1 MiB of memory to decode"
	many := func(format string) string {
		var b strings.Builder
		for i := range uint32(40_000) {
			word := binary.LittleEndian.AppendUint32(nil, i<<3)
			b.WriteString(strings.ReplaceAll(format, "####", string(word)))
		}
		return b.String()
	}
	for _, c := range []struct{ name, pickle, want string }{
		{"stack", many("NNNN"), over},
		{"marks", many("(((("), over},
		{"values", "]" + many("(NNNNNNNNNe"), over},
		{"containers", many("]0"), over},
		{"tuples", many("]\x850"), over},
		{"plain tuples", many("J####\x850"), over},
		{"memo", "N" + many("\x94\x94\x94\x94\x94\x94\x94\x94"), over},
		{"wide memo", "J\xff\xff\xff\x7f" + many("\x94\x94\x94\x94"), over},
		{"texts", many("T\x04\x00\x00\x00####0"), over},
		{"text bytes", "T\x00\x00\x10\x00" + strings.Repeat("a", 1<<20), over},
		{"integers", many("\x8a\x09####\x00\x00\x00\x00\x010"), over},
		{"decimals", strings.Repeat("L99999999999999999999\n0", 40_000), over},
		{"floats", many("G########0") + many("G########0"), over},
		{"lines of floats", strings.Repeat("F1\n0", 80_000), over},
		{"long text", "T\x01\x00\x00\x01", "a string of 16777217 bytes; at most 16777216 are read"},
		{"long line", "V" + strings.Repeat("a", 17<<20), "a line of more than 16777216 bytes"},
		{"long name", "T\x01\x10\x00\x00" + strings.Repeat("a", 4097) + "2\x93", "a global whose name has 8195 bytes"},
		{"one wide entry", "J\xff\xff\xff\x7f" + many("q\x00q\x00q\x00q\x00"), "cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := NewDecoder(strings.NewReader(c.pickle), nil)
			d.budget.limit = 1 << 20
			if _, err := d.Decode(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestReadError(t *testing.T) {
	boom := errors.New("boom")
	_, err := NewDecoder(io.MultiReader(strings.NewReader("]("), iotest.ErrReader(boom)), nil).Decode()
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "byte 2: read: boom") {
		t.Errorf("error %v", err)
	}
	if _, err = NewDecoder(stuck{}, nil).Decode(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v", err)
	}
}

// stuck is a reader that never gives anything.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }
