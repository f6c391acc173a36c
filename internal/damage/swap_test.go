package damage

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"gm/formats/graph"
	"gm/internal/models/graphs"
	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
)

// step returns the graph of a small network, and its file.
func step(t *testing.T) (*store.Graph, []byte) {
	m, err := graphs.Build("alexnet,batch=32")
	if err != nil {
		t.Fatal(err)
	}
	g := &store.Graph{Graph: m.Graph, Meta: graph.Meta{Source: graph.SourceShapes, WorldSize: 1}}
	var out bytes.Buffer
	if err := store.WriteGraph(&out, g); err != nil {
		t.Fatal(err)
	}
	return g, out.Bytes()
}

func steps(t *testing.T) kind {
	_, file := step(t)
	return kind{"graph", map[string][]byte{"alexnet": file}, useGraph, []string{
		"op", "tensor", "use", "from", "forward", "backward", "update", "conv", "linear", "other", "inner", "layer-input", "attention-out",
	}}
}

// limits are those of a device of so much memory.
func limits(device int64) scheduling.Limits {
	return scheduling.Limits{Device: device, Host: 64 << 30, Link: link.Default()}
}

// useGraph does what gmswap plan, sim and check do with a graph.
func useGraph(t *testing.T, rng *rand.Rand, file string) error {
	g, err := store.ReadGraph(file)
	if err != nil {
		return err
	}
	checkGraph(t, g)
	all := policy.Policies()
	p := all[rng.IntN(len(all))]
	l := limits(g.Meta.PlainPeak/100*(40+rng.Int64N(70)) + 1)
	m, err := scheduling.Make(g.Graph, p, l)
	if short := new(policy.ShortError); errors.As(err, &short) {
		return nil
	} else if err != nil {
		return err
	}
	if m.Moved.Step < 0 || m.Moved.Peak < 0 || m.Moved.Peak > l.Device || m.Plain.Step < 0 {
		t.Errorf("policy %s: a step of %v with %d bytes of %d, %v with nothing moved", p.Name, m.Moved.Step, m.Moved.Peak, l.Device, m.Plain.Step)
	}
	for _, v := range check.Check(g.Graph, m.Schedule.Schedule, swap.Limits{Device: l.Device, Host: l.Host}, check.Slots(g.Graph, m.Actions)) {
		t.Errorf("policy %s: %v", p.Name, v)
	}
	if err := store.WriteSchedule(&bytes.Buffer{}, m.Schedule, g); err != nil {
		t.Errorf("policy %s: %v", p.Name, err)
	}
	return nil
}

// checkGraph compares the peak and the time that a graph's file says with sums of their own.
func checkGraph(t *testing.T, g *store.Graph) {
	ns := new(big.Int)
	peak := new(big.Int)
	for i := range g.Ops {
		ns.Add(ns, big.NewInt(int64(g.Ops[i].Duration)))
		now := big.NewInt(g.Ops[i].Base)
		for k := range g.Tensors {
			tensor := &g.Tensors[k]
			if last := tensor.Uses[len(tensor.Uses)-1]; int(tensor.Made) <= i && i <= int(last) {
				now.Add(now, big.NewInt(tensor.Bytes))
			}
		}
		if now.Cmp(peak) > 0 {
			peak = now
		}
	}
	if m := g.Meta; m.ComputeNS != 0 && ns.Cmp(big.NewInt(m.ComputeNS)) != 0 || m.PlainPeak != 0 && peak.Cmp(big.NewInt(m.PlainPeak)) != 0 {
		t.Errorf("accepted with %d ns and a peak of %d, expected %v and %v", m.ComputeNS, m.PlainPeak, ns, peak)
	}
}

func schedules(t *testing.T) kind {
	g, file := step(t)
	path := filepath.Join(t.TempDir(), "g.parquet")
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"all", "auto"} {
		p, err := policy.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := scheduling.Make(g.Graph, p, limits(g.Meta.PlainPeak))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := store.WriteSchedule(&out, m.Schedule, g); err != nil {
			t.Fatal(err)
		}
		files[name] = out.Bytes()
	}
	use := func(t *testing.T, _ *rand.Rand, file string) error { return useSchedule(t, path, file) }
	return kind{"schedule", files, use, []string{"offload", "prefetch", "free", "wait", "recompute", "settle", "in", "out", "compute"}}
}

// useSchedule does what gmswap check and sim do with a schedule.
func useSchedule(t *testing.T, graph, file string) error {
	g, err := store.ReadGraph(graph)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.ReadSchedule(file)
	if err != nil {
		return err
	}
	if err := s.Fits(g); err != nil {
		return err
	}
	figures := link.Default()
	if s.Meta.Link != "" {
		if figures, err = link.Parse([]byte(s.Meta.Link)); err != nil {
			return err
		}
	}
	result, err := simulate.Run(g.Graph, s.Actions, figures.Under(link.Load{GPUs: int(s.Meta.GPUs)}), nil)
	unlimited := swap.Limits{Device: math.MaxInt64, Host: math.MaxInt64}
	wrong := check.Check(g.Graph, s.Schedule, unlimited, nil)
	if err == nil && (len(wrong) > 0 || result.Step < 0 || result.Peak < 0) {
		t.Errorf("a step of %v with %d bytes is simulated of a schedule that is wrong: %v", result.Step, result.Peak, wrong)
	}
	if err != nil && len(wrong) == 0 {
		t.Errorf("a schedule is right, and is not simulated: %v", err)
	}
	return err
}
