package check

import (
	"strings"
	"testing"

	"gm/formats/plan"
)

// repeated returns a plan of the rows 10 to 20 of 40.
func repeated(period int64, arenas []string, tensors ...plan.Tensor) *checked {
	c := &checked{
		meta:    plan.Meta{Alignment: 1, Rows: 40, First: 10, End: 20, Period: period},
		tensors: tensors, arenas: map[arena]*usage{}, text: func(code int32) string { return arenas[code] },
	}
	for i := range tensors {
		c.tensors[i].ID = int64(i + 1)
	}
	ends := map[int32]int64{}
	for i := range tensors {
		ends[tensors[i].Arena] = max(ends[tensors[i].Arena], c.end(&tensors[i]))
	}
	for _, end := range ends {
		c.meta.Peak += end
	}
	return c
}

func TestRepeated(t *testing.T) {
	arenas := []string{"", "d0.iteration", "d0.resident"}
	at := func(alloc, free, offset int64) plan.Tensor {
		return plan.Tensor{Size: 8, Alloc: alloc, Free: free, Offset: offset, Arena: 1}
	}
	resident := func(t plan.Tensor) plan.Tensor {
		t.Arena = 2
		return t
	}
	for _, c := range []struct {
		name    string
		tensors []plan.Tensor
		want    string // of the plan with a period; the one without is valid
	}{
		{"within", []plan.Tensor{at(11, 15, 0), at(15, 20, 0)}, ""},
		{"into the next", []plan.Tensor{at(13, 15, 0), at(15, 23, 0)}, ""},
		{"a whole period", []plan.Tensor{at(11, 15, 8), at(15, 25, 0)}, ""},
		{"onto the next", []plan.Tensor{at(12, 15, 4), at(15, 23, 0)}, "row 0: tensor 1 [0x4, 0xc) overlaps tensor 2 [0x0, 0x8) of row 1 in arena d0.iteration when they are repeated (rows 2 to 3 of a period)"},
		{"both into the next", []plan.Tensor{at(16, 21, 0), at(19, 24, 8)}, ""},
		{"elsewhere", []plan.Tensor{resident(at(12, 15, 0)), at(15, 23, 0)}, ""},
		{"onto itself", []plan.Tensor{at(15, 26, 0)}, "row 0: tensor 1 lives longer than a period, in arena d0.iteration, which is repeated"},
		{"never freed", []plan.Tensor{at(15, 40, 0)}, "lives longer than a period"},
		{"long, but not repeated", []plan.Tensor{resident(at(12, 30, 0)), resident(at(15, 40, 8))}, ""},
		{"left by the repetition before", []plan.Tensor{at(4, 13, 0), at(13, 15, 0), at(15, 23, 0)}, ""},
	} {
		if _, err := repeated(0, arenas, c.tensors...).places(); err != nil {
			t.Errorf("%s: without a period: %v", c.name, err)
		}
		_, err := repeated(10, arenas, c.tensors...).places()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, expected %q", c.name, err, c.want)
		}
	}
}

func TestRepeatedReport(t *testing.T) {
	tensors := []plan.Tensor{
		{Size: 8, Alloc: 11, Free: 14, Offset: 8, Arena: 1}, {Size: 16, Alloc: 12, Free: 30, Arena: 2}, {Size: 8, Alloc: 17, Free: 23, Arena: 1},
	}
	arenas := []string{"", "d0.iteration", "d0.resident"}
	for period, want := range map[int64]Report{
		0:  {Tensors: 3, Arenas: 2, Peak: 32, Load: 24},
		10: {Tensors: 3, Arenas: 2, Peak: 32, Load: 32, Repeated: 2},
	} {
		if got, err := repeated(period, arenas, tensors...).places(); err != nil || got != want {
			t.Errorf("period %d: %+v, %v, expected %+v", period, got, err, want)
		}
	}
}

// The number of rows that are not the framework's may differ between repetitions.
func TestRepeatedClock(t *testing.T) {
	arenas := []string{"", "d0.iteration"}
	tensors := []plan.Tensor{
		{Size: 8, Alloc: 14, Free: 16, Arena: 1}, {Size: 8, Alloc: 17, Free: 23, Arena: 1},
	}
	a := &allocs{others: []int64{10, 11, 12}}
	c := repeated(10, arenas, tensors...)
	if _, err := c.places(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.repeats(a.clock); err == nil || !strings.Contains(err.Error(), "when they are repeated (rows 1 to 3 of a period)") {
		t.Errorf("error %v", err)
	}
}
