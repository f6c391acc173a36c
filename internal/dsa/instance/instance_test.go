package instance

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gm/internal/dsa"
)

func read(t testing.TB, text string, o Options) *Instance {
	t.Helper()
	in, err := Read(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, text string
		o          Options
		want       dsa.Problem
	}{
		{"plain", "id,lower,upper,size\na,0,10,48\nb,-5,5,32\n", Options{Period: 20},
			dsa.Problem{Start: []int64{0, -5}, End: []int64{10, 5}, Size: []int64{48, 32}, Align: 16, Period: 20}},
		{"any order, aliases, blank lines", "\ufeffsize, Start ,buffer_id,end\r\n\r\n7,0,a,9\r\n3,5,b,5", Options{},
			dsa.Problem{Start: []int64{0, 5}, End: []int64{10, 6}, Size: []int64{7, 3}, Align: 1}},
		{"alignment", "id,lower,upper,size,alignment,hint\na,0,1,64,32,-1\nb,0,1,96,64,5\nc,0,1,32,,", Options{},
			dsa.Problem{Start: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Size: []int64{64, 96, 32}, Align: 32, Aligns: []int64{0, 64, 0}}},
		{"alignment of the whole", "id,lower,upper,size,alignment\na,0,1,64,32\nb,0,1,90,64", Options{Align: 128},
			dsa.Problem{Start: []int64{0, 0}, End: []int64{1, 1}, Size: []int64{64, 90}, Align: 128}},
		{"fixed", "id,lower,upper,size,offset\na,0,1,64,\nb,0,1,64,-1\nc,0,1,64,96", Options{},
			dsa.Problem{Start: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Size: []int64{64, 64, 64}, Align: 32, Fixed: []int64{-1, -1, 96}}},
		{"none fixed", "id,lower,upper,size,offset\na,0,1,64,", Options{},
			dsa.Problem{Start: []int64{0}, End: []int64{1}, Size: []int64{64}, Align: 64}},
		{"ties", "id,lower,upper,size,same_as,next_to\na,0,1,60,b,\nb,0,1,60,,c\nc,0,1,20,,", Options{Align: 16},
			dsa.Problem{Start: []int64{0, 0, 0}, End: []int64{1, 1, 1}, Size: []int64{60, 60, 20}, Align: 16,
				Ties: []dsa.Tie{{A: 1, B: 0}, {A: 2, B: 1, Delta: 32}}}},
		{"nothing", "id,lower,upper,size\n", Options{}, dsa.Problem{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := read(t, test.text, test.o)
			if len(in.Arenas) == 0 && test.want.Len() == 0 {
				return
			}
			if diff := cmp.Diff(test.want, in.Arenas[0].Problem); len(in.Arenas) != 1 || diff != "" {
				t.Errorf("%d arenas; expected -, got +:\n%s", len(in.Arenas), diff)
			}
		})
	}
}

func TestArenas(t *testing.T) {
	in := read(t, "arena,id,lower,upper,size,next_to\ny,1,0,4,8,\nx,2,1,2,4,\ny,3,2,3,4,1\n", Options{})
	var got []string
	for _, a := range in.Arenas {
		got = append(got, fmt.Sprint(a.Name, a.Rows, a.Problem.Size, a.Problem.Ties))
	}
	if want := []string{"y[0 2] [8 4] [{0 1 8}]", "x[1] [4] []"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	var out strings.Builder
	if err := in.Write(&out, []dsa.Layout{{Offsets: []int64{0, 8}}, {Offsets: []int64{16}}}); err != nil {
		t.Fatal(err)
	}
	want := "arena,id,lower,upper,size,next_to,offset\ny,1,0,4,8,,0\nx,2,1,2,4,,16\ny,3,2,3,4,1,8\n"
	if out.String() != want {
		t.Errorf("%q, expected %q", out.String(), want)
	}
}

func TestWriteKeepsWhatItDoesNotKnow(t *testing.T) {
	in := read(t, "id,offset,lower,name,upper,size\r\n a b ,,0,\"x,4,2\r\n\r\n007,-1,0,,4,1", Options{})
	var out strings.Builder
	if err := in.Write(&out, []dsa.Layout{{Offsets: []int64{1, 0}}}); err != nil {
		t.Fatal(err)
	}
	if want := "id,offset,lower,name,upper,size\n a b ,1,0,\"x,4,2\n007,0,0,,4,1\n"; out.String() != want {
		t.Errorf("%q, expected %q", out.String(), want)
	}
}

func TestGzip(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprint(w, "id,lower,upper,size\n1,0,1,5\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := Read(bytes.NewReader(packed.Bytes()), Options{})
	if err != nil || in.Arenas[0].Problem.Size[0] != 5 {
		t.Fatal(err)
	}
	if _, err := Read(bytes.NewReader(packed.Bytes()[:packed.Len()-9]), Options{}); err == nil || !strings.HasPrefix(err.Error(), "gunzip: ") {
		t.Errorf("cut off: %v", err)
	}
}

func TestErrors(t *testing.T) {
	const header = "id,lower,upper,size,alignment,offset,gaps,same_as,next_to,arena\n"
	for text, want := range map[string]string{
		"":                                         "empty input",
		"\n\n":                                     "empty input",
		"id,lower,upper\n":                         "line 1: no column named size",
		"\nid,upper,size\n":                        "line 2: no column named lower or begin or start",
		"id,lower,size\n":                          "line 1: expected one of the columns upper and end",
		"id,lower,upper,end,size\n":                "line 1: expected one of the columns upper and end",
		"id,buffer,lower,upper,size":               "line 1: two columns are the id",
		strings.Repeat("x", maxLine+1):             "line 1: longer than 65536 bytes",
		header + strings.Repeat("x", maxLine+1):    "line 2: longer than 65536 bytes",
		header + "a,0,1\n":                         "line 2: 3 fields, expected 10",
		header + "\na,0,1,x,,,,,,\n":               "line 3: size is \"x\", expected an integer",
		header + "a,0,1,,,,,,,\n":                  "line 2: size is empty",
		header + "a,0,1,-1,,,,,,\n":                "line 2: size is -1, expected at least 0",
		header + "a,0,9223372036854775808,1,,,,,,": "line 2: upper is 9223372036854775808, more than 64 bits hold",
		header + "a,5,4,1,,,,,,\n":                 "line 2: the life ends at 4, before its start at 5",
		header + "a,0,1,1,-8,,,,,\n":               "line 2: alignment is -8, expected 0 to 1099511627776",
		header + "a,0,1,1,8,4,,,,\n":               "line 2: offset 4 is not a multiple of the alignment, 8",
		header + "a,0,1,1,,,1-2,,,\n":              "line 2: gaps in a buffer's life are not supported",
		header + "a,0,1,1,,,,,,\na,0,1,1,,,,,,":    "line 3: the id \"a\" is used twice",
		header + "a,0,1,1,,,,b,,\n":                "line 2: same_as names \"b\", which is no buffer",
		header + "a,0,1,1,,,,,a,\n":                "line 2: next_to names the buffer itself",
		header + "a,0,9,8,,,,,,\nb,3,6,8,,,,,a,\nc,1,5,2,,,,,a,\n":  `buffers "b" and "c" live at the same time, but next_to and same_as make them overlap`,
		header + "a,7,12,8,,,,,,\nb,5,9,5,,,,,c,\nc,5,6,5,,,,a,,\n": `buffers "a" and "b" live at the same time, but next_to and same_as make them overlap`,
		header + "a,0,1,1,,,,,b,x\nb,0,1,1,,,,,,y":                  "line 2: next_to names \"b\", a buffer of another arena",
		header + "a,0,1,9223372036854775807,,,,,,\nb,0,1,1,,,,,,":   "line 3: the sizes add up to more than an int64 holds",
		"id,begin,end,size\na,0,9223372036854775807,1\n":            "line 2: end is 9223372036854775807, expected -9223372036854775808 to 9223372036854775806",
		"\x1f\x8b\x08": "gunzip: unexpected EOF",
		"id,lower,upper,size\n1,0,1," + strings.Repeat("9", 100) + "\n": "line 2: size is " + strings.Repeat("9", 60) + "..., more than 64 bits hold",
	} {
		if _, err := Read(strings.NewReader(text), Options{}); err == nil || err.Error() != want {
			t.Errorf("%.200q:\n  %v, expected\n  %s", text, err, want)
		}
	}
}

func TestSizesThatRoundUpTooFar(t *testing.T) {
	const text = "id,lower,upper,size,next_to\na,0,1,9223372036854775806,\nb,0,1,1,a\n"
	if _, err := Read(strings.NewReader(text), Options{Align: 512}); err == nil {
		t.Error("no error")
	}
}

func TestOpenNamesTheFile(t *testing.T) {
	for name, want := range map[string]string{
		"none.csv": "read instance none.csv: no such file or directory",
		".":        "read instance .: is a directory",
	} {
		if _, err := Open(name, Options{}); err == nil || err.Error() != want {
			t.Errorf("%v, expected %s", err, want)
		}
	}
}

// FuzzRead checks that an accepted input gives valid problems, and that its output is the same instance without fixed buffers.
func FuzzRead(f *testing.F) {
	f.Add("id,lower,upper,size\na,0,10,48\nb,5,15,32\n", int64(0))
	f.Add("arena,offset,buffer,begin,end,size,alignment,same_as,next_to,gaps,hint\nx,,1,0,4,8,64,,,,3\nx,128,2,0,4,8,,1,,,\ny,-1,3,0,4,8,,,,,", int64(512))
	f.Fuzz(func(t *testing.T, text string, align int64) {
		in, err := Read(strings.NewReader(text), Options{Align: align})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of two lines: %q", err)
			}
			return
		}
		var layouts []dsa.Layout
		for _, a := range in.Arenas {
			if err := a.Problem.Validate(); err != nil {
				t.Error(err)
			}
			layouts = append(layouts, dsa.Layout{Offsets: slices.Repeat([]int64{dsa.Free}, a.Problem.Len())})
		}
		var out strings.Builder
		if err := in.Write(&out, layouts); err != nil {
			t.Fatal(err)
		}
		again, err := Read(strings.NewReader(out.String()), Options{Align: align})
		if err != nil {
			t.Fatalf("the output of %q: %v", text, err)
		}
		if len(again.Arenas) != len(in.Arenas) {
			t.Fatalf("%d arenas became %d", len(in.Arenas), len(again.Arenas))
		}
		for i := range in.Arenas {
			before, after := in.Arenas[i], again.Arenas[i]
			if !slices.Equal(before.Rows, after.Rows) || !slices.Equal(before.Problem.End, after.Problem.End) {
				t.Errorf("%+v became %+v", before, after)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	text.WriteString("id,lower,upper,size\n")
	for i := range 1_000_000 {
		fmt.Fprintf(&text, "%d,%d,%d,%d\n", i, i*7, i*7+1000, 512*(i%1000+1))
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		read(b, text.String(), Options{})
	}
}
