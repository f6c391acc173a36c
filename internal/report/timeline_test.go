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

// timeline has two areas that swap sizes, and a map on which the first has the lower half.
func timeline() Timeline {
	return Timeline{
		Title: "timeline", Start: 1, End: 3,
		Areas: []Area{{Name: "parameters", Bytes: []int64{3 << 30, 1 << 30}}, {Name: "rest <&>", Bytes: []int64{1 << 30, 3 << 30}, Rest: true}},
		Held:  []int64{5 << 30, 6 << 30},
		Limit: 7 << 30,
		Marks: []Mark{{At: 1.5, Name: "zero"}, {At: 2.5, Name: "one"}, {At: 2.51, Name: "OOM", Alarm: true}, {At: 2.52, Name: "mine", Above: true}},
		Map: &AddressMap{
			Bytes: 6 << 30, Rows: 2,
			Held: func(column, row int) uint8 { return 255 },
			Part: func(column, row, area int) uint8 {
				if area == 0 && row == 0 {
					return 255
				}
				return 0
			},
		},
	}
}

func TestTimelinePNG(t *testing.T) {
	plain := timeline()
	plain.Map, plain.Held, plain.Limit = nil, nil, 100<<30
	var out bytes.Buffer
	if err := WriteTimelinesPNG(&out, []Timeline{timeline(), plain}); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	size := picture.Bounds()
	if ratio := float64(size.Dx()) / float64(size.Dy()); ratio < 0.66 || ratio > 0.68 {
		t.Errorf("three charts are %v", size)
	}
	found := map[color.Color]bool{}
	for x := size.Min.X; x < size.Max.X; x += 3 {
		for y := size.Min.Y; y < size.Max.Y; y += 3 {
			found[color.NRGBAModel.Convert(picture.At(x, y))] = true
		}
	}
	for _, c := range []color.NRGBA{AreaColor(0), RestColor, freeColor, heldColor, alarmColor} {
		if !found[c] {
			t.Errorf("nothing is of colour %v", c)
		}
	}
}

func TestTimelineSVG(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTimelinesSVG(&out, []Timeline{timeline()}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<image", "parameters", "rest &lt;&amp;&gt;", "reserved and free", "<title>timeline</title>", ">OOM<", ">zero<", ">mine<", "capacity 7 GiB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(out.String(), ">one<") {
		t.Error("two names are above each other")
	}
	d := xml.NewDecoder(&out)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoTimelines(t *testing.T) {
	if err := WriteTimelinesPNG(io.Discard, nil); err != nil {
		t.Error(err)
	}
	if err := WriteTimelinesSVG(io.Discard, []Timeline{{Title: "empty", End: 1}}); err != nil {
		t.Error(err)
	}
}

func TestMixture(t *testing.T) {
	var m mixture
	m.add(color.NRGBA{0xff, 0, 0, 0xff}, 85)
	m.add(color.NRGBA{0, 0xff, 0, 0xff}, 170)
	m.add(color.NRGBA{0, 0, 0xff, 0xff}, -3)
	if got, want := m.color(), (color.NRGBA{85, 170, 0, 0xff}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
