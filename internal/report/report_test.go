package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := Table{Titles: []string{"name", "n", ""}}
	table.Add("a", "1", "")
	table.Add("longer", "1000", "ünd")
	var out strings.Builder
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "name       n\n" +
		"a          1\n" +
		"longer  1000  ünd\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func charts() []Chart {
	return []Chart{
		{Title: "one", Limit: 5 << 30, Lines: []Line{
			{Name: "live", TimeNS: []int64{0, 1e9, 2e9}, Bytes: []int64{0, 3 << 30, 1 << 30}, Filled: true},
			{Name: "reserved", TimeNS: []int64{0, 1e9, 2e9}, Bytes: []int64{1 << 30, 4 << 30, 4 << 30}},
			{Name: "torch", TimeNS: []int64{0, 1e9}, Bytes: []int64{1 << 30, 5 << 30}, Failed: true},
			{Name: "nothing", Failed: true},
		}},
		{Title: "of one point, \x1b[31m and a long title: " + strings.Repeat("long", 100), Lines: []Line{{Name: "x", TimeNS: []int64{5}, Bytes: []int64{7}}}},
	}
}

func packings() []Packing {
	return []Packing{{Title: "packing", Rows: "row", Kinds: []string{"long", "short", "none"}, Blocks: []Block{
		{Start: 0, End: 100, Low: 0, High: 1 << 30, Kind: 1}, {Start: 50, End: 80, Low: 1 << 30, High: 2 << 30, Kind: 0, Shade: 2},
	}}}
}

func growth() Growth {
	return Growth{Title: "growth", X: "buffers", Y: "seconds", Curves: []Curve{
		{Name: "one", X: []float64{10, 1e3, 1e6}, Y: []float64{0.001, 0.1, 30}},
		{Name: "target", X: []float64{10, 1e6}, Y: []float64{10, 10}, Limit: true},
	}}
}

func tradeoff(most float64) Tradeoff {
	return Tradeoff{Title: "tradeoff", X: "GiB", Y: "seconds", Curves: []Curve{
		{Name: "one", X: []float64{10, 12, 14}, Y: []float64{most, 2, 1}},
		{Name: "a point", X: []float64{13}, Y: []float64{1.5}},
		{Name: "nothing"},
		{Name: "bound", X: []float64{10, 14}, Y: []float64{1.1, 1}, Limit: true},
	}}
}

// TestKeys: a legend names the limit, the lines with what became of them, and the kinds that there are.
func TestKeys(t *testing.T) {
	for _, test := range []struct {
		of   drawable
		want string
	}{
		{&charts()[0], "capacity 5 GiB, live, reserved, torch: out of memory, nothing: out of memory"},
		{&packings()[0], "long, short"},
		{&Chart{}, ""},
	} {
		var names []string
		for _, k := range test.of.keys() {
			names = append(names, k.name)
		}
		if got := strings.Join(names, ", "); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestAxis(t *testing.T) {
	for _, test := range []struct {
		axis axis
		want string
	}{
		{axis{0, 10, false}, "0 1 2 3 4 5 6 7 8 9 10"},
		{axis{61.2, 103, false}, "65 70 75 80 85 90 95 100"},
		{axis{0.98, 1.16, false}, "0.98 1.00 1.02 1.04 1.06 1.08 1.10 1.12 1.14 1.16"},
		{axis{3e4, 6.1e4, false}, "30000 35000 40000 45000 50000 55000 60000"},
		{axis{-0.01, 1.08, true}, "1 1.5 2 3 5 7 10"},
		{axis{1.5, 2.5, true}, "50 70 100 150 200 300"},
	} {
		var labels []string
		for _, tick := range test.axis.ticks() {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != test.want {
			t.Errorf("%+v: %s, want %s", test.axis, got, test.want)
		}
	}
}

func TestPNG(t *testing.T) {
	for name, c := range map[string]struct {
		write  func(io.Writer) error
		charts int
	}{
		"charts":   {func(w io.Writer) error { return WritePNG(w, charts()) }, 2},
		"packings": {func(w io.Writer) error { return WritePackingPNG(w, packings()) }, 1},
		"growth":   {func(w io.Writer) error { return WriteGrowthPNG(w, growth()) }, 1},
		"tradeoff": {func(w io.Writer) error { return WriteTradeoffPNG(w, tradeoff(2.5)) }, 1},
		"much":     {func(w io.Writer) error { return WriteTradeoffPNG(w, tradeoff(250)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := c.write(&out); err != nil {
				t.Fatal(err)
			}
			picture, err := png.Decode(&out)
			if err != nil {
				t.Fatal(err)
			}
			size := picture.Bounds()
			if ratio := float64(size.Dx()) / float64(size.Dy()); ratio < 1.98/float64(c.charts) || ratio > 2.02/float64(c.charts) {
				t.Errorf("%d charts are %v", c.charts, size)
			}
			colours := map[color.Color]bool{}
			for x := size.Min.X; x < size.Max.X; x += 3 {
				for y := size.Min.Y; y < size.Max.Y; y += 3 {
					colours[picture.At(x, y)] = true
				}
			}
			if len(colours) < 4 {
				t.Errorf("the picture has %d colours: nothing is drawn", len(colours))
			}
		})
	}
}

func TestNothingToDraw(t *testing.T) {
	if err := WritePNG(io.Discard, nil); err != nil {
		t.Error(err)
	}
	if err := WritePackingSVG(io.Discard, []Packing{{Title: "empty"}}); err != nil {
		t.Error(err)
	}
	for _, curves := range [][]Curve{nil, {{Name: "none"}}, {{Name: "one", X: []float64{0}, Y: []float64{0}}}} {
		if err := WriteTradeoffSVG(io.Discard, Tradeoff{Curves: curves}); err != nil {
			t.Error(err)
		}
	}
	many := make([]Chart, 3*MaxCharts)
	var out bytes.Buffer
	if err := WriteSVG(&out, many); err != nil {
		t.Error(err)
	}
}

// TestFailedRequests has a chart show the moments at which requests failed.
func TestFailedRequests(t *testing.T) {
	c := charts()[0]
	for _, failed := range [][]int64{nil, {1e9}, {1e9, 2e9}, {1e9, 9e9}} { // the last behind all lines
		c.FailedNS = failed
		var out bytes.Buffer
		if err := WriteSVG(&out, []Chart{c}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), ">OOM<"); got != len(failed) {
			t.Errorf("%d requests failed, %d are named", len(failed), got)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got, want := Printable("a\x1b[31m\nb\xff \u00e9"), "a?[31m?b? \u00e9"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSVG(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"charts":   func(w io.Writer) error { return WriteSVG(w, charts()) },
		"packings": func(w io.Writer) error { return WritePackingSVG(w, packings()) },
		"growth":   func(w io.Writer) error { return WriteGrowthSVG(w, growth()) },
		"tradeoff": func(w io.Writer) error { return WriteTradeoffSVG(w, tradeoff(250)) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := write(&out); err != nil {
				t.Fatal(err)
			}
			paths := strings.Count(out.String(), "<path")
			if paths < 4 {
				t.Errorf("%d paths: nothing is drawn", paths)
			}
			if !strings.Contains(out.String(), "<title>") || strings.Contains(out.String(), "\x1b") {
				t.Error("no title, or one that is not printable")
			}
			d := xml.NewDecoder(&out)
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
