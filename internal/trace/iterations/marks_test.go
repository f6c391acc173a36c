package iterations

import (
	"slices"
	"testing"
)

func TestMarks(t *testing.T) {
	const adam, sgd = "Optimizer.step#Adam.step", "Optimizer.step#SGD.step"
	for name, c := range map[string]struct {
		tags []string // of rows 0, 1, ...
		want []int64
	}{
		"none":              {[]string{"epoch", "Optimizer.zero_grad#Adam.zero_grad END"}, nil},
		"steps":             {[]string{"step", "epoch", "step"}, []int64{0, 2}},
		"optimizer":         {[]string{adam + " START", adam + " END", adam + " START", adam + " END"}, []int64{1, 3}},
		"steps come first":  {[]string{adam + " END", "step", adam + " END", "step"}, []int64{1, 3}},
		"two optimizers":    {[]string{sgd + " END", adam + " END", sgd + " END", adam + " END"}, []int64{1, 3}},
		"an unfinished end": {[]string{adam + " END", adam + " START"}, []int64{0}},
	} {
		var m Marks
		for row, tag := range c.tags {
			m.Add(tag, int64(row))
		}
		if got := m.Ends(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestSections(t *testing.T) {
	found := []Section{{5, 10}, {10, 15}}
	for name, c := range map[string]struct {
		ends   []int64
		want   []Section
		marked bool
	}{
		"no marks":         {nil, found, false},
		"one mark":         {[]int64{9}, found, false},
		"as many":          {[]int64{9, 14}, found, false},
		"more":             {[]int64{9, 14, 19}, []Section{{0, 10}, {10, 15}, {15, 20}}, true},
		"at the beginning": {[]int64{0, 1, 2}, []Section{{0, 1}, {1, 2}, {2, 3}}, true},
	} {
		got, marked := Sections(found, c.ends)
		if !slices.Equal(got, c.want) || marked != c.marked {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, marked, c.want, c.marked)
		}
	}
}
