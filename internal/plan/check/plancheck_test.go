package check

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/plan/layout"
)

// writeTrace returns the file of a trace of n allocations on two devices and two streams, one in five in a pool.
func writeTrace(t *testing.T, seed uint64, n int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{Source: "test", Alignment: 512})
	pool := w.Strings().Code("(0,1)")
	var b trace.Batch
	var live []trace.Event
	now := int64(1000)
	add := func(e trace.Event) {
		now += 1 + rng.Int64N(50)
		e.TimeNS = now
		b.Append(e)
	}
	for id := int64(1); id <= int64(n); id++ {
		for len(live) > 0 && rng.IntN(20) < len(live) {
			k := rng.IntN(len(live))
			e := live[k]
			live = append(live[:k], live[k+1:]...)
			if e.Op = trace.OpFree; rng.IntN(2) == 0 {
				e.Op = trace.OpFreeRequested
				add(e)
				e.Op = trace.OpFreeCompleted
			}
			add(e)
		}
		e := trace.Event{Op: trace.OpAlloc, ID: id, Size: 1 + rng.Int64N(1<<20), Device: rng.Int32N(2), Stream: rng.Int64N(2) * 7}
		if rng.IntN(5) == 0 {
			e.Pool = pool
		}
		if rng.IntN(10) == 0 {
			e.Level = trace.LevelDriver
		}
		add(e)
		live = append(live, e)
	}
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func openTrace(t *testing.T, file []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// writePlan plans a trace, applies change to the result, and returns a reader of the plan.
func writePlan(t *testing.T, file []byte, o layout.Options, change func(*layout.Plan)) *plan.Reader {
	t.Helper()
	tensors, err := layout.Collect(openTrace(t, file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := layout.Solve(t.Context(), tensors, o)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(p)
	}
	var out bytes.Buffer
	w := plan.NewWriter(&out, p.Meta)
	if err := p.Write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := plan.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGoodPlans(t *testing.T) {
	for seed := range uint64(20) {
		file := writeTrace(t, seed, 300)
		for _, o := range []layout.Options{
			{}, {Solver: "best-fit"}, {Streams: layout.Separate}, {Align: 1}, {Align: 4096},
			{Window: &layout.Window{Lo: 100, Hi: 400}}, {Window: &layout.Window{Lo: 0, Hi: 1}},
			{Window: &layout.Window{Lo: 300, Hi: 350}, Streams: layout.Separate},
			{Window: &layout.Window{Lo: 300, Hi: 350}, Periodic: true}, {Window: &layout.Window{Lo: 0, Hi: 1}, Periodic: true},
			{Window: &layout.Window{Lo: 100, Hi: 300}, Streams: layout.Separate, Periodic: true},
		} {
			r, err := Check(writePlan(t, file, o, nil), openTrace(t, file))
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, o, err)
			}
			if r.Tensors == 0 || r.Arenas == 0 || r.Load > r.Peak {
				t.Errorf("seed %d, %+v: %+v", seed, o, r)
			}
		}
	}
}

func TestBadPlans(t *testing.T) {
	file := writeTrace(t, 1, 300)
	for _, c := range []struct {
		name   string
		change func(*layout.Plan)
		want   string
	}{
		{"overlap", func(p *layout.Plan) {
			for i, arena := range p.Arena {
				if i > 0 && arena == p.Arena[0] && p.Tensors.Alloc[p.Member[i]] < p.Tensors.Free[p.Member[0]] {
					p.Offset[i] = p.Offset[0]
				}
			}
		}, "overlaps tensor"},
		{"one arena for two", func(p *layout.Plan) {
			for i := range p.Arena {
				p.Arena[i] = 0
			}
		}, "in an arena of pool"},
		{"peak too high", func(p *layout.Plan) { p.Meta.Peak += 512 }, "peak of"},
		{"not optimal", func(p *layout.Plan) { p.Meta.LowerBound, p.Meta.Optimal = p.Meta.LowerBound-1, true }, "optimal"},
		{"another trace", func(p *layout.Plan) { p.Meta.Digest = "0123456789abcdef" }, "another trace"},
		{"more rows", func(p *layout.Plan) { p.Meta.Rows++ }, "rows"},
		{"missing first", func(p *layout.Plan) { drop(p, 0) }, "is missing"},
		{"missing", func(p *layout.Plan) { drop(p, 77) }, "is missing"},
		{"missing last", func(p *layout.Plan) { drop(p, len(p.Member)-1) }, "is missing"},
		{"invented", func(p *layout.Plan) { p.Tensors.Alloc[100]-- }, "allocates nothing there"},
		{"other id", func(p *layout.Plan) { p.Tensors.ID[p.Tensors.Len()-1] += 5 }, "has id"},
		{"other size", func(p *layout.Plan) { p.Tensors.Size[50]-- }, "has size"},
		{"freed early", func(p *layout.Plan) { p.Tensors.Free[0]-- }, "has free"},
		{"other time", func(p *layout.Plan) { p.Tensors.AllocNS[9]-- }, "has alloc_ns"},
		{"other stream", func(p *layout.Plan) { p.Tensors.Stream[30]++ }, "has stream"},
		{"other device", func(p *layout.Plan) { moveDevice(p) }, "has device"},
		{"other pool", func(p *layout.Plan) { p.Tensors.Pool[3] ^= 1 }, "in an arena of pool"},
	} {
		_, err := Check(writePlan(t, file, layout.Options{}, c.change), openTrace(t, file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected one with %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %v", c.name, err)
		}
	}
}

// drop removes a tensor from a plan and changes nothing else.
func drop(p *layout.Plan, i int) {
	p.Member = append(p.Member[:i:i], p.Member[i+1:]...)
	p.Arena = append(p.Arena[:i:i], p.Arena[i+1:]...)
	p.Offset = append(p.Offset[:i:i], p.Offset[i+1:]...)
}

// moveDevice moves all tensors of one device to another.
func moveDevice(p *layout.Plan) {
	for i := range p.Tensors.Device {
		if p.Tensors.Device[i] == 1 {
			p.Tensors.Device[i] = 2
		}
	}
}

// The reader refuses these before the checker sees them.
func TestBadRows(t *testing.T) {
	good := func() *checked {
		return &checked{
			meta:   plan.Meta{Peak: 1536, LowerBound: 1536, Alignment: 512, Rows: 10},
			arenas: map[arena]*usage{},
			tensors: []plan.Tensor{
				{ID: 1, Size: 512, Alloc: 0, Free: 9, Offset: 0},
				{ID: 2, Size: 700, Alloc: 1, Free: 4, Offset: 512},
				{ID: 3, Size: 1000, Alloc: 5, Free: 10, Offset: 512},
			},
			text: func(int32) string { return "d0" },
		}
	}
	if _, err := good().places(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*checked)
		want   string
	}{
		{"overlap by the rounding alone", func(c *checked) { c.tensors[0].Offset, c.tensors[1].Offset = 512, 0 }, "row 1: tensor 2 [0x0, 0x400) overlaps tensor 1 [0x200, 0x400) of row 0 in arena d0 while both live (rows 1 to 4)"},
		{"unaligned", func(c *checked) { c.tensors[1].Offset = 520 }, "row 1: tensor 2 is at offset 520"},
		{"below the start", func(c *checked) { c.tensors[1].Offset = -512 }, "offset -512"},
		{"far away", func(c *checked) { c.tensors[1].Offset = 1 << 61 }, "offset"},
		{"no size", func(c *checked) { c.tensors[2].Size = 0 }, "has 0 bytes"},
		{"no life", func(c *checked) { c.tensors[2].Free = 5 }, "lives in the rows [5, 5)"},
		{"life beyond the end", func(c *checked) { c.tensors[2].Free = 11 }, "lives in the rows"},
		{"disorder", func(c *checked) { c.tensors[2].Alloc = 1 }, "not after the tensor above"},
		{"no alignment", func(c *checked) { c.meta.Alignment = 0 }, "alignment"},
		{"peak too low", func(c *checked) { c.meta.Peak = 1024 }, "peak"},
		{"negative bound", func(c *checked) { c.meta.LowerBound = -1 }, "lower bound"},
		{"bound too high", func(c *checked) { c.meta.LowerBound = 2048 }, "lower bound of 2048 bytes, with a peak of 1536"},
	} {
		bad := good()
		c.change(bad)
		if _, err := bad.places(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected one with %q", c.name, err, c.want)
		}
	}
}

func TestWindowMustBeCovered(t *testing.T) {
	file := writeTrace(t, 3, 300)
	o := layout.Options{Window: &layout.Window{Lo: 200, Hi: 500}}
	middle := func(p *layout.Plan) { drop(p, len(p.Member)/2) }
	if _, err := Check(writePlan(t, file, o, middle), openTrace(t, file)); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without a tensor in its middle: error %v", err)
	}
	// Without the first or the last tensor, the peak or the bound may be what is wrong.
	for name, which := range map[string]func(n int) int{"first": func(int) int { return 0 }, "last": func(n int) int { return n - 1 }} {
		spoil := func(p *layout.Plan) { drop(p, which(len(p.Member))) }
		if _, err := Check(writePlan(t, file, o, spoil), openTrace(t, file)); err == nil {
			t.Errorf("without its %s tensor: no error", name)
		}
	}
}
