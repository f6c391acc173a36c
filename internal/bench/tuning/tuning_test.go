package tuning

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/remedy"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/importer"
)

// TestSettingIsRead: PyTorch reads each setting as it is meant, for any setting that a search can reach and many that it cannot.
func TestSettingIsRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := Default()
		s.Expandable = random.IntN(2) == 0
		s.MaxSplitSize = splitSizes[random.IntN(len(splitSizes))] << 20
		s.MaxNonSplitRounding = splitRoundings[random.IntN(len(splitRoundings))] << 20
		s.LargeSegment = largeSegments[random.IntN(len(largeSegments))] << 20
		s.GCThreshold = thresholds[random.IntN(len(thresholds))]
		for range random.IntN(4) {
			from := random.IntN(len(s.Divisions))
			s = s.divide(from, from+1+random.IntN(len(s.Divisions)-from), divisionSteps[random.IntN(len(divisionSteps))])
		}
		read, err := allocconf.Parse(s.String())
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if read != s.Conf {
			t.Fatalf("%s is read as %+v, expected %+v", s, read, s.Conf)
		}
	}
}

func TestSettingText(t *testing.T) {
	s := Expandable()
	s.MaxSplitSize = 128 << 20
	for _, c := range []struct {
		setting Setting
		text    string
		changes int
	}{
		{Default(), "", 0},
		{Expandable(), "expandable_segments:True", 1},
		{s, "expandable_segments:True,max_split_size_mb:128", 2},
		{Default().divide(0, 16, 4), "roundup_power2_divisions:4", 1},
		{Default().divide(4, 7, 8), "roundup_power2_divisions:[8:0,16:8,32:8,64:8,128:0,>:0]", 3},
		{Default().divide(10, 16, 2), "roundup_power2_divisions:[512:0,1024:2,>:2]", 2},
	} {
		if got := c.setting.String(); got != c.text || c.setting.Changes() != c.changes {
			t.Errorf("%q with %d changes, expected %q with %d", got, c.setting.Changes(), c.text, c.changes)
		}
	}
}

func open(t *testing.T, names ...string) []*replay.Program {
	t.Helper()
	var all []*replay.Program
	for _, name := range names {
		programs, err := replay.Open("../../../testdata/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, programs...)
	}
	return all
}

// TestSearch: a replay with the found setting has the figures of the search, the setting is no worse than the first ones, and does not
// depend on the number of cores.
func TestSearch(t *testing.T) {
	programs := open(t, "settings/divisions4", "settings/segments40")
	gpu := bench.GPU{Capacity: 16 << 30, Costs: sim.H200()} // with 4 TiB, expandable segments would take longest
	found, err := Search(t.Context(), Jobs(programs, gpu.Capacity), gpu.Costs, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if found.Default.Peak != 3321888768 || found.Expandable.Peak != 2967470080 || found.Recorded != nil {
		t.Errorf("default %d, expandable %d, recorded %v", found.Default.Peak, found.Expandable.Peak, found.Recorded)
	}
	if found.Live > found.Best[0].Peak || found.Live != 2585294336 {
		t.Errorf("%d live", found.Live)
	}
	if best := found.Best[0]; best.Peak > 101*found.Expandable.Peak/100 || best.DriverNS > found.Expandable.DriverNS {
		t.Errorf("%s reserves %d, the driver takes %d ns", best.Setting, best.Peak, best.DriverNS)
	}
	checkReplayed(t, programs, gpu, found.Best)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	again, err := Search(t.Context(), Jobs(programs, gpu.Capacity), gpu.Costs, func() {})
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b *Outcome) bool { return a.Setting == b.Setting && slices.Equal(a.Peaks, b.Peaks) }
	if !slices.EqualFunc(found.Best, again.Best, same) || found.Tried != again.Tried {
		t.Errorf("on one core: %d settings tried, %s the best; before %d, %s", again.Tried, again.Best[0].Setting, found.Tried, found.Best[0].Setting)
	}
}

func checkReplayed(t *testing.T, programs []*replay.Program, gpu bench.GPU, outcomes []*Outcome) {
	t.Helper()
	for _, o := range outcomes {
		for i, p := range programs {
			dev := sim.New(gpu.Capacity, gpu.Costs)
			a, err := blocks.NewTorch(dev, o.Setting.Conf)
			if err != nil {
				t.Fatal(err)
			}
			res, err := replay.Run(t.Context(), p, a, dev)
			if err != nil {
				t.Fatal(err)
			}
			if res.Stats.PeakReserved != o.Peaks[i] {
				t.Errorf("%s reserves %d of %s, found %d", o.Setting, res.Stats.PeakReserved, p.Name, o.Peaks[i])
			}
		}
	}
}

// TestCapacity: settings that run on a GPU rank before those that do not, and none runs with less memory than is live.
func TestCapacity(t *testing.T) {
	programs := open(t, "settings/segments40")
	for capacity, fits := range map[int64]bool{2500 << 20: true, 2200 << 20: false} {
		found, err := Search(t.Context(), Jobs(programs, capacity), sim.H200(), func() {})
		if err != nil {
			t.Fatal(err)
		}
		if best := found.Best[0]; (best.OOMs == 0) != fits || best.Peak > capacity {
			t.Errorf("in %d: %s fails %d times and reserves %d", capacity, best.Setting, best.OOMs, best.Peak)
		}
		if found.Default.OOMs != 1 {
			t.Errorf("in %d the default does not fail", capacity)
		}
	}
}

// TestFailed: the default does not meet the request that ended a job. What meets it and takes the least is the best, by however little.
func TestFailed(t *testing.T) {
	p := open(t, "captures/oom")[0]
	r := p.Refusals[len(p.Refusals)-1]
	job := Job{Program: p.Through(r), Room: remedy.Room{Bytes: 149305819136}, Failed: true}
	found, err := Search(t.Context(), []Job{job}, sim.H200(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	if best := found.Best[0]; best.Setting != Expandable() || best.OOMs > 0 || found.Default.OOMs != 1 {
		t.Errorf("best is %q, which fails %d times; the default fails %d times", best.Setting, best.OOMs, found.Default.OOMs)
	}
}

// TestOlder: the best setting for PyTorch before 2.11 is found even where a newer setting has the same figures.
func TestOlder(t *testing.T) {
	newer, old := Default(), Default()
	newer.LargeSegment, old.MaxSplitSize = 10<<20, 64<<20
	s := &search{known: map[Setting]*Outcome{}}
	for setting, peak := range map[Setting]int64{Default(): 3 << 30, newer: 1 << 30, old: 1 << 30} {
		s.known[setting] = &Outcome{Setting: setting, Peak: peak, Peaks: []int64{peak}}
	}
	if best := s.distinct(anySetting); len(best) != 2 || best[0].Setting != newer {
		t.Errorf("%d outcomes, the best is %s", len(best), best[0].Setting)
	}
	if best := s.rank(s.distinct(older), 1); best[0].Setting != old {
		t.Errorf("before 2.11 the best is %q", best[0].Setting)
	}
}

// TestBegunMidway: a recording that began midway, with memory that other settings had laid out, can be tuned too.
func TestBegunMidway(t *testing.T) {
	f, err := os.Open("../../../testdata/snapshots/gpt2-expandable-cut.pickle.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	if err := importer.Import(f, "cut", w, func(text string) { t.Error(text) }); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "cut")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := replay.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Search(t.Context(), Jobs(programs, 0), sim.H200(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	if len(programs[0].Initial) == 0 || found.Best[0].Peak < found.Live || found.Best[0].Peak > found.Default.Peak {
		t.Errorf("%d segments before the recording, best %d, default %d, live %d", len(programs[0].Initial), found.Best[0].Peak,
			found.Default.Peak, found.Live)
	}
}

// TestDefaultIsBest: a job whose tensors are all of one size needs no setting.
func TestDefaultIsBest(t *testing.T) {
	p := &replay.Program{Name: "plain", Align: 512}
	for range 64 {
		tensor := int32(len(p.Sizes))
		p.Sizes, p.Streams, p.Pools = append(p.Sizes, 32<<20), append(p.Streams, 0), append(p.Pools, 0)
		for _, kind := range []replay.Kind{replay.Alloc, replay.Free} {
			p.Kinds, p.Tensors = append(p.Kinds, kind), append(p.Tensors, tensor)
			p.Rows, p.TimesNS = append(p.Rows, int32(len(p.Rows))), append(p.TimesNS, int64(len(p.Rows))*1e9)
		}
	}
	found, err := Search(t.Context(), Jobs([]*replay.Program{p}, 0), sim.H200(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	if found.Best[0] != found.Default || found.Default.Peak != 32<<20 {
		t.Errorf("best is %q, the default reserves %d", found.Best[0].Setting, found.Default.Peak)
	}
}
