package policy

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/draft"
	"gm/internal/swap/papers"
	"gm/internal/swap/simulate"
)

// randomProblem returns a graph and limits: some generous, some that nothing can keep to.
func randomProblem(seed uint64, most int) (*swap.Graph, swap.Limits) {
	r := rand.New(rand.NewPCG(seed, 0))
	g := randomGraph(r, 2+r.IntN(most), 1+r.IntN(most), r.IntN(4) == 0)
	_, top := draft.Over(g.Plain(), 0)
	l := swap.Limits{Device: int64((0.1 + r.Float64()) * float64(top)), Host: math.MaxInt64}
	if r.IntN(3) == 0 {
		l.Host = int64(r.Float64() * float64(top))
	}
	rate := func() float64 { return 1e9 * math.Exp(4*r.Float64()-2) }
	l.Link = link{time.Duration(r.IntN(100)), rate(), rate()}
	return g, l
}

// pace has the program take time to launch a graph's operators, and for actions.
func pace(g *swap.Graph, r *rand.Rand) {
	most := int(2*g.Compute())/len(g.Ops) + 1
	for i := range g.Ops {
		g.Ops[i].Launch = time.Duration(r.IntN(most))
	}
	for i := range g.Tensors {
		g.Tensors[i].Relaunch = time.Duration(r.IntN(most))
	}
	for kind := range g.Handling {
		g.Handling[kind] = time.Duration(r.IntN(most/4 + 1))
	}
}

// planned is what a policy made of a problem.
type planned struct {
	schedule *swap.Schedule
	result   simulate.Result
}

// try plans and proves that what comes is right: a schedule that keeps to the limits, or a *ShortError.
func try(t *testing.T, p Policy, g *swap.Graph, l swap.Limits) *planned {
	t.Helper()
	s, err := p.Plan(g, l)
	var short *draft.ShortError
	if errors.As(err, &short) {
		if short.Policy != p.Name || short.Bytes <= 0 || short.Op < 0 || int(short.Op) >= len(g.Ops) {
			t.Errorf("%s: %+v", p.Name, short)
		}
		return nil
	}
	if err != nil {
		t.Errorf("%s: %v", p.Name, err)
		return nil
	}
	r, err := simulate.Run(g, s.Actions, l.Link, nil)
	if err != nil {
		t.Errorf("%s: %v", p.Name, err)
		return nil
	}
	if r.Peak > l.Device || r.Host > l.Host {
		t.Errorf("%s takes %d bytes of %d, and %d of the host's %d", p.Name, r.Peak, l.Device, r.Host, l.Host)
	}
	for _, v := range check.Check(g, s, l, check.Slots(g, s.Actions)) {
		t.Errorf("%s: %v", p.Name, v)
	}
	for _, a := range s.Actions {
		if a.Kind == swap.Offload && !g.Tensors[a.Tensor].Copyable(a.Bytes) {
			t.Errorf("%s: %v of %d bytes of %d", p.Name, a.Kind, a.Bytes, g.Tensors[a.Tensor].Bytes)
		}
	}
	return &planned{s, *r}
}

// checkProblem tries all policies on a problem, and compares their results with what is possible.
func checkProblem(t *testing.T, g *swap.Graph, l swap.Limits) {
	t.Helper()
	bound, possible := LowerBound(g, l)
	moved := movedBound(g, l.Device)
	fits := map[string]*planned{}
	for _, p := range Policies() {
		r := try(t, p, g, l)
		if r == nil {
			continue
		}
		fits[p.Name] = r
		least := max(g.Compute(), r.result.OutBusy, r.result.InBusy, bound)
		if !possible || r.result.Step < least {
			t.Errorf("%s: a step of %v, where none is faster than %v (%v)", p.Name, r.result.Step, least, possible)
		}
		if back := broughtBack(g, r.schedule); back < moved {
			t.Errorf("%s brings %d bytes back, where %d have to be", p.Name, back, moved)
		}
		if p.Name == "joint" {
			again := try(t, p, g, l)
			if again == nil || !slices.Equal(again.schedule.Actions, r.schedule.Actions) {
				t.Error("joint plans differently the second time")
			}
		}
	}
	if fits["none"] != nil && (fits["auto"] == nil || len(fits["auto"].schedule.Actions) > 0) {
		t.Error("auto moves something where none fits")
	}
}

// broughtBack returns the bytes that are copied back or recomputed.
func broughtBack(g *swap.Graph, s *swap.Schedule) int64 {
	bytes, part := int64(0), make([]int64, len(g.Tensors)) // copied back of those that are partly there
	for _, a := range s.Actions {
		switch a.Kind {
		case swap.Prefetch:
			bytes += a.Bytes
			part[a.Tensor] = a.Bytes
		case swap.Recompute:
			bytes += g.Tensors[a.Tensor].Bytes - part[a.Tensor]
		case swap.Free:
			part[a.Tensor] = 0
		}
	}
	return bytes
}

func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(80) {
		g, l := randomProblem(seed, 40)
		if checkProblem(t, g, l); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if pace(g, rand.New(rand.NewPCG(seed, 1))); seed%2 == 0 {
			checkProblem(t, g, l)
		}
		if t.Failed() {
			t.Fatalf("seed %d, paced", seed)
		}
	}
}

func FuzzPlan(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g, l := randomProblem(seed, 50)
		checkProblem(t, g, l)
	})
}

// TestTransformer has a network of layers in less and less memory.
func TestTransformer(t *testing.T) {
	g := transformer(6, 16384)
	_, top := draft.Over(g.Plain(), 0)
	for _, part := range []float64{1, 0.5} {
		l := swap.Limits{Device: int64(part * float64(top)), Host: math.MaxInt64, Link: pcie}
		checkProblem(t, g, l)
		for _, name := range []string{"auto", "joint"} {
			p, err := Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			r := try(t, p, g, l)
			if r == nil {
				t.Fatalf("%s does not find a schedule in %g of the memory", name, part)
			}
			if bound, _ := LowerBound(g, l); float64(r.result.Step) > 1.1*float64(bound) {
				t.Errorf("%s in %g of the memory: a step of %v, where the bound is %v", name, part, r.result.Step, bound)
			}
		}
	}
}

// TestQuickMonotone gives quick more and more memory.
func TestQuickMonotone(t *testing.T) {
	quick, err := Lookup("quick")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(15) {
		g, l := randomProblem(seed, 30)
		_, top := draft.Over(g.Plain(), 0)
		r := rand.New(rand.NewPCG(seed, 1))
		var limits []int64
		for range 10 {
			limits = append(limits, int64(r.Float64()*1.1*float64(top)))
		}
		slices.Sort(limits)
		before := time.Duration(math.MaxInt64)
		for _, l.Device = range limits {
			now := try(t, quick, g, l)
			switch {
			case now == nil && before < math.MaxInt64:
				t.Fatalf("seed %d: nothing in %d bytes, where there was something in less", seed, l.Device)
			case now != nil && now.result.Step > before:
				t.Fatalf("seed %d: %v in %d bytes, where it was %v in less", seed, now.result.Step, l.Device, before)
			case now != nil:
				before = now.result.Step
			}
		}
	}
}

// TestPlanEach makes the same schedules of one problem as of one for each amount of memory.
func TestPlanEach(t *testing.T) {
	for seed := range uint64(15) {
		g, l := randomProblem(seed, 30)
		_, top := draft.Over(g.Plain(), 0)
		least := g.Least()
		devices := []int64{0, top / 4, top / 2, top / 2, top - 1, top, 2 * top, least, least + 1, least + (top-least)/100, least + (top-least)/40}
		slices.Sort(devices)
		for _, p := range Policies() {
			p.PlanEach(g, l, devices, func(i int, s *swap.Schedule, err error) {
				l.Device = devices[i]
				alone, failed := p.Plan(g, l)
				same := reflect.DeepEqual(err, failed) && (s == nil) == (alone == nil)
				if !same || s != nil && !slices.Equal(s.Actions, alone.Actions) {
					t.Fatalf("seed %d, %s in %d bytes: %v, %v, alone %v, %v", seed, p.Name, devices[i], s, err, alone, failed)
				}
			})
		}
	}
}

// TestBelady compares how often tensors of one size are fetched.
func TestBelady(t *testing.T) {
	compared := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := randomGraph(r, 10+r.IntN(60), 5+r.IntN(40), true)
		_, top := draft.Over(g.Plain(), 0)
		p := newProblem(g, swap.Limits{Device: int64((0.3 + 0.7*r.Float64()) * float64(top)), Host: math.MaxInt64, Link: perByte{}})
		fetches := map[string]int{}
		for name, plan := range map[string]planner{"belady": planBelady, "lru": paper(papers.LRU), "fifo": paper(papers.FIFO), "latency": paper(papers.Latency)} {
			actions, err := plan(p)
			if err != nil {
				continue
			}
			fetches[name] = 0
			for _, a := range actions {
				if a.Kind == swap.Prefetch {
					fetches[name]++
				}
			}
		}
		least, ok := fetches["belady"]
		if !ok {
			continue
		}
		for name, n := range fetches {
			if n < least {
				t.Fatalf("seed %d: %s fetches %d tensors, belady %d", seed, name, n, least)
			}
		}
		if bound := movedBound(g, p.Limits.Device); int64(least)*1000 < bound {
			t.Fatalf("seed %d: belady fetches %d tensors, where the bound is %d bytes", seed, least, bound)
		}
		compared += least
	}
	if compared < 1000 {
		t.Errorf("no more than %d fetches were compared", compared)
	}
}

// TestCheckAgrees spoils schedules: the simulator and the independent proof have to take the same ones.
func TestCheckAgrees(t *testing.T) {
	taken, refused := 0, 0
	for seed := range uint64(300) {
		g, l := randomProblem(seed, 40)
		r := rand.New(rand.NewPCG(seed, 3))
		for _, p := range Policies()[1:] { // all but the one that takes longest
			s, err := p.Plan(g, l)
			if err != nil || len(s.Actions) == 0 {
				continue
			}
			for range 10 {
				actions := spoil(r, g, s.Actions)
				result, err := simulate.Run(g, actions, l.Link, nil)
				fits := err == nil && result.Peak <= l.Device && result.Host <= l.Host
				found := check.Check(g, &swap.Schedule{Actions: actions}, l, nil)
				if fits != (len(found) == 0) {
					t.Fatalf("seed %d, %s: the simulator says %v, the proof %v: %s", seed, p.Name, err, found, show(g, actions))
				}
				if fits {
					taken++
				} else {
					refused++
				}
			}
		}
	}
	if taken < 100 || refused < 1000 {
		t.Errorf("%d schedules were taken, %d refused", taken, refused)
	}
}

// spoil changes one action, or takes it away.
func spoil(r *rand.Rand, g *swap.Graph, actions []swap.Action) []swap.Action {
	all := slices.Clone(actions)
	i := r.IntN(len(all))
	a := &all[i]
	switch r.IntN(6) {
	case 0:
		return slices.Delete(all, i, i+1)
	case 1:
		a.At += int32(r.IntN(5)) - 2
	case 2:
		a.Bytes = int64(r.IntN(int(g.Tensors[a.Tensor].Bytes) + 2))
	case 3:
		a.Tensor = int32(r.IntN(len(g.Tensors)))
	case 4:
		a.Kind = swap.Kind(r.IntN(6))
	case 5:
		all = slices.Insert(all, r.IntN(len(all)+1), *a)
	}
	slices.SortStableFunc(all, func(a, b swap.Action) int { return int(a.At - b.At) })
	return all
}

// TestManyPages has so many tensors that looking at all of them for each that is sent away, as latency has to, takes many times as long as
// not to do so.
func TestManyPages(t *testing.T) {
	g := transformer(1_500, 1024)
	_, top := draft.Over(g.Plain(), 0)
	took := func(plan planner) time.Duration {
		begin := time.Now()
		if _, err := plan(newProblem(g, swap.Limits{Device: top / 2, Host: math.MaxInt64, Link: pcie})); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	var lru, latency time.Duration
	for range 3 { // a busy machine may interrupt either
		lru, latency = took(paper(papers.LRU)), took(paper(papers.Latency))
		if 3*lru <= latency {
			return
		}
	}
	t.Errorf("lru took %v, latency %v", lru, latency)
}

// TestConcurrent plans for one graph from several goroutines.
func TestConcurrent(t *testing.T) {
	g, l := randomProblem(1, 60)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for _, p := range Policies() {
				try(t, p, g, l)
			}
		})
	}
	wg.Wait()
}
