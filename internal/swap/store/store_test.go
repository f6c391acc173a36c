package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/formats/column/columntest"
	"gm/formats/graph"
	"gm/formats/schedule"
	"gm/internal/swap"
)

// sample returns a random valid graph of so many operators and tensors.
func sample(seed uint64, ops, tensors int) *Graph {
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &Graph{Graph: &swap.Graph{Name: "sample", Device: "H200"}, Meta: graph.Meta{Source: graph.SourceRecorded, Host: "gpu1", Rank: 3}}
	for i := range ops {
		g.Ops = append(g.Ops, swap.Op{
			Name: "layers." + string(rune('a'+i%26)), Type: swap.OpType(rng.IntN(10)), Phase: swap.Phase(3 * i / ops), Layer: int32(i%5) - 1,
			Duration: time.Duration(rng.IntN(1000)), Base: rng.Int64N(1 << 30),
		})
	}
	for i := range tensors {
		made := rng.IntN(ops)
		t := swap.Tensor{
			Name: "saved", Bytes: 1 + rng.Int64N(1<<30), Made: int32(made), Layer: int32(i%7) - 1, Role: swap.Role(i % 3), Recompute: time.Duration(i),
			Scratch: rng.Int64N(1 << 20),
		}
		for op := made; op < ops; op += 1 + rng.IntN(ops) {
			t.Uses = append(t.Uses, int32(op))
		}
		g.Tensors = append(g.Tensors, t)
		g.Recorded = append(g.Recorded, Recorded{Saved: int32(i) - 1, Version: int64(i % 2), DType: "half", Shape: "[2]"})
	}
	for i := range g.Tensors {
		for range rng.IntN(3) {
			if from := rng.IntN(tensors); from != i && g.Tensors[from].Made <= g.Tensors[i].Made {
				g.Tensors[i].From = append(g.Tensors[i].From, int32(from))
			}
		}
	}
	sampleOrder(g.Graph, rng)
	return g
}

// sampleOrder adds what orders operators beside their tensors.
func sampleOrder(g *swap.Graph, rng *rand.Rand) {
	if len(g.Ops) == 0 {
		return
	}
	g.Complete, g.States, g.Origin = true, []string{"parameter", "random"}, make([]int32, len(g.Ops))
	g.Ops[0].Reads = []int32{0, 1}
	for i := range g.Ops {
		o := &g.Ops[i]
		g.Origin[i] = int32(len(g.Ops) - 1 - i)
		switch rng.IntN(3) {
		case 0:
			o.Changes = []int32{rng.Int32N(2)}
		case 1:
			o.Options = []swap.Option{{Name: "fft", Workspace: rng.Int64N(100), Duration: 7}, {Name: "direct", Duration: 9}}
		}
	}
	for i := range g.Tensors {
		t := &g.Tensors[i]
		if rng.IntN(2) == 0 {
			t.Changed = t.Uses[len(t.Uses)-1:]
		}
		if other := rng.IntN(len(g.Tensors)); other != i && slices.Contains(g.Tensors[other].Uses, t.Made) {
			t.Over = []int32{int32(other)}
		}
	}
}

func encodeGraph(t testing.TB, g *Graph) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteGraph(&out, g); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func decodeGraph(file []byte) (*Graph, error) {
	r, err := graph.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		return nil, err
	}
	return DecodeGraph(r)
}

func TestGraphRoundTrip(t *testing.T) {
	for name, g := range map[string]*Graph{
		"empty":        sample(1, 0, 0),
		"no tensors":   sample(2, 3, 0),
		"small":        sample(3, 5, 9),
		"large":        sample(4, 20000, 9000),
		"not recorded": func() *Graph { g := sample(5, 9, 9); g.Recorded = nil; return g }(),
	} {
		t.Run(name, func(t *testing.T) {
			file := encodeGraph(t, g)
			if err := g.Validate(); err != nil {
				t.Fatal(err)
			}
			got, err := decodeGraph(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.File != "x.parquet" || got.Meta.Host != "gpu1" || got.Meta.Rank != 3 || got.Meta.ComputeNS != int64(g.Compute()) {
				t.Errorf("file %s, metadata %+v", got.File, got.Meta)
			}
			sum := sha256.Sum256(file)
			if got.Digest != hex.EncodeToString(sum[:]) {
				t.Errorf("digest %s", got.Digest)
			}
			if got.File = ""; !reflect.DeepEqual(got, g) {
				t.Errorf("\n%+v, want\n%+v", got, g)
			}
		})
	}
}

// The names and numbers of both sides are the same.
func TestNames(t *testing.T) {
	for p := swap.Forward; p <= swap.Update; p++ {
		if a, b := p.String(), graph.Phase(p).String(); a != b {
			t.Errorf("phase %s is %s in a file", a, b)
		}
	}
	for k := swap.Offload; k <= swap.Settle; k++ {
		if a, b := k.String(), schedule.Kind(k).String(); a != b {
			t.Errorf("kind %s is %s in a file", a, b)
		}
	}
	if p, k := graph.Phase(swap.Update+1).String(), schedule.Kind(swap.Settle+1).String(); p != "Phase(3)" || k != "Kind(6)" {
		t.Errorf("in a file there are also phase %s and kind %s", p, k)
	}
}

func TestWriteGraphErrors(t *testing.T) {
	for want, change := range map[string]func(*Graph){
		"write graph: tensor 2: size of 0 bytes":      func(g *Graph) { g.Tensors[2].Bytes = 0 },
		"write graph: BUG: 1 recorded tensors of 9":   func(g *Graph) { g.Recorded = g.Recorded[:1] },
		"write graph: metadata: capacity of -1 bytes": func(g *Graph) { g.Meta.Capacity = -1 },
		"write graph: row 1: version -1": func(g *Graph) {
			g.Recorded[0].Version = -1
			g.Tensors[0].Made, g.Tensors[0].From, g.Tensors[0].Over = 0, nil, nil
		},
		"write graph: operator 1: duration of -1ns":                    func(g *Graph) { g.Ops[1].Duration = -1 },
		"write graph: row 0: name of 1048577 bytes, more than 1048576": func(g *Graph) { g.Ops[0].Name = strings.Repeat("x", 1<<20+1) },
	} {
		g := sample(3, 5, 9)
		change(g)
		if got := message(WriteGraph(&bytes.Buffer{}, g)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if g.Digest != "" {
			t.Errorf("%s: digest set", want)
		}
	}
}

// write writes rows that keep to the rules of the format.
func write(t *testing.T, meta graph.Meta, change func(code func(string) int32, op, made *graph.Row)) []byte {
	t.Helper()
	var out bytes.Buffer
	w := graph.NewWriter(&out, meta)
	code := w.Strings().Code
	op, made, use := graph.NewRow(graph.KindOp, 0, 0), graph.NewRow(graph.KindTensor, 0, 0), graph.NewRow(graph.KindUse, 0, 0)
	op.Type, op.DurationNS, op.BaseBytes = code("conv"), 100, 1000
	made.Tensor, made.Bytes, made.Role = 0, 24, code("inner")
	use.Tensor = 0
	change(code, &op, &made)
	b := &graph.Batch{}
	b.Append(op)
	b.Append(made)
	b.Append(use)
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReadGraphErrors(t *testing.T) {
	keep := func(func(string) int32, *graph.Row, *graph.Row) {}
	for name, c := range map[string]struct {
		meta   graph.Meta
		change func(code func(string) int32, op, made *graph.Row)
		want   string
	}{
		"good": {graph.Meta{ComputeNS: 100, PlainPeak: 1024}, keep, ""},
		"type": {graph.Meta{}, func(code func(string) int32, op, _ *graph.Row) { op.Type = code("convolution") },
			`graph x.parquet: row 0: unknown type "convolution"`},
		"role": {graph.Meta{}, func(_ func(string) int32, _, made *graph.Row) { made.Role = 0 },
			`graph x.parquet: row 1: unknown role ""`},
		"time": {graph.Meta{ComputeNS: 101}, keep, "graph x.parquet: metadata: operators that take 101 ns, those of the rows take 100"},
		"peak": {graph.Meta{PlainPeak: 1000}, keep, "graph x.parquet: metadata: peak of 1000 bytes, that of the rows is 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			c.meta.Operators, c.meta.Tensors = 1, 1
			if _, err := decodeGraph(write(t, c.meta, c.change)); message(err) != c.want {
				t.Errorf("%q, want %q", message(err), c.want)
			}
		})
	}
}

// actions is a schedule for a sample.
func actions(g *Graph) *Schedule {
	made := g.Tensors[1].Made
	return &Schedule{
		Schedule: &swap.Schedule{Policy: "test", Actions: []swap.Action{
			{Kind: swap.Offload, Tensor: 1, At: made, Bytes: 1},
			{Kind: swap.Free, Tensor: 1, At: made},
			{Kind: swap.Prefetch, Tensor: 1, At: made, Bytes: 1},
			{Kind: swap.Recompute, Tensor: 1, At: made},
		}},
		Slots: []int64{512, -1, 512, -1},
		Meta:  schedule.Meta{HostPeak: 1024, Link: "[]"},
	}
}

func TestScheduleRoundTrip(t *testing.T) {
	dir := t.TempDir()
	names := [2]string{filepath.Join(dir, "graph.parquet"), filepath.Join(dir, "schedule.parquet")}
	g := sample(6, 50, 20)
	if err := os.WriteFile(names[0], encodeGraph(t, g), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, slots := range [][]int64{{512, -1, 512, -1}, nil} {
		want := actions(g)
		want.Slots = slots
		var out bytes.Buffer
		if err := WriteSchedule(&out, want, g); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(names[1], out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		of, err := ReadGraph(names[0])
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadSchedule(names[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Fits(of); err != nil {
			t.Error(err)
		}
		want.File = names[1]
		if !reflect.DeepEqual(got, want) {
			t.Errorf("\n%+v, want\n%+v", got, want)
		}
		if m := got.Meta; m.Graph != "sample" || m.Policy != "test" || m.Digest != of.Digest || m.PlainPeak != of.Meta.PlainPeak || m.Tensors != 20 {
			t.Errorf("metadata %+v", m)
		}
	}
	if _, err := ReadGraph(names[1]); message(err) != "graph "+names[1]+": this is a schedule, not a graph" {
		t.Error(err)
	}
	if _, err := ReadSchedule(filepath.Join(dir, "none")); err == nil {
		t.Error("read a file that does not exist")
	}
}

func TestFits(t *testing.T) {
	g := sample(6, 50, 20)
	encodeGraph(t, g)
	s := actions(g)
	if err := WriteSchedule(&bytes.Buffer{}, s, g); err != nil {
		t.Fatal(err)
	}
	s.File, g.File = "s.parquet", "g.parquet"
	s.Actions[1].Bytes = 1 << 40
	if got := message(s.Fits(g)); !strings.HasPrefix(got, "schedule s.parquet: row 1: free of 1099511627776 bytes of a tensor of ") {
		t.Error(got)
	}
	s.Actions[1].Tensor = 20
	if got, want := message(s.Fits(g)), fmt.Sprintf("schedule s.parquet: row 1: tensor 20 at operator %d, graph g.parquet has 20 and 50", s.Actions[1].At); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	other := sample(7, 50, 20)
	encodeGraph(t, other)
	other.File = "h.parquet"
	if got := message(s.Fits(other)); !strings.HasPrefix(got, "schedule s.parquet was made for another graph than h.parquet: ") {
		t.Error(got)
	}
}

func TestWriteScheduleErrors(t *testing.T) {
	g := sample(6, 50, 20)
	if got := message(WriteSchedule(&bytes.Buffer{}, actions(g), g)); got != "write schedule: BUG: its graph was neither read nor written" {
		t.Error(got)
	}
	encodeGraph(t, g)
	for want, change := range map[string]func(*Schedule){
		"write schedule: BUG: 1 slots of 4 actions":                                func(s *Schedule) { s.Slots = s.Slots[:1] },
		"write schedule: row 3: tensor 20 of 20":                                   func(s *Schedule) { s.Actions[3].Tensor = 20 },
		"write schedule: row 3: unknown kind 7":                                    func(s *Schedule) { s.Actions[3].Kind = 7 },
		"write schedule: row 2: prefetch of 1 bytes at 0, offloaded were 1 at 512": func(s *Schedule) { s.Slots[2] = 0 },
		"write schedule: metadata: link is no JSON":                                func(s *Schedule) { s.Meta.Link = "x" },
	} {
		s := actions(g)
		change(s)
		if got := message(WriteSchedule(&bytes.Buffer{}, s, g)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzReadGraph checks that what is read is a graph that is written, and written the same when it is read again.
func FuzzReadGraph(f *testing.F) {
	plain, err := columntest.Plain(encodeGraph(f, sample(8, 6, 5)))
	if err != nil {
		f.Fatal(err)
	}
	data, footer := columntest.Split(plain)
	f.Add(data, footer)
	f.Fuzz(func(t *testing.T, data, footer []byte) {
		g, err := decodeGraph(columntest.Join(data, footer))
		if err != nil {
			return
		}
		file := encodeGraph(t, g)
		again, err := decodeGraph(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encodeGraph(t, again), file) {
			t.Errorf("read again as\n%+v, was\n%+v", again.Graph, g.Graph)
		}
	})
}

func decodeSchedule(file []byte) (*Schedule, error) {
	r, err := schedule.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		return nil, err
	}
	return readSchedule(r)
}

// FuzzReadSchedule checks that a schedule that is read and fits its graph is written the same when it is read again.
func FuzzReadSchedule(f *testing.F) {
	g := sample(6, 50, 20)
	encodeGraph(f, g)
	encode := func(s *Schedule) []byte {
		var out bytes.Buffer
		if err := WriteSchedule(&out, s, g); err != nil {
			f.Fatal(err)
		}
		return out.Bytes()
	}
	plain, err := columntest.Plain(encode(actions(g)))
	if err != nil {
		f.Fatal(err)
	}
	data, footer := columntest.Split(plain)
	f.Add(data, footer)
	f.Fuzz(func(t *testing.T, data, footer []byte) {
		s, err := decodeSchedule(columntest.Join(data, footer))
		if err != nil || s.Fits(g) != nil {
			return
		}
		var out, again bytes.Buffer
		if err := WriteSchedule(&out, s, g); err != nil {
			t.Fatal(err)
		}
		if s, err = decodeSchedule(out.Bytes()); err != nil {
			t.Fatal(err)
		}
		if err := WriteSchedule(&again, s, g); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("read again as\n%+v, %v", s, err)
		}
	})
}
