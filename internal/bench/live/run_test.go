package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/fake"
	"gm/internal/cuda/sim"
)

const mib = 1 << 20

// TestMain runs the tests on the installed driver, or on the fake one.
func TestMain(m *testing.M) {
	if onGPU {
		os.Exit(m.Run())
	}
	os.Exit(fake.Rerun(m.Run))
}

// maker creates the allocator of a text as gmbench takes it.
func maker(t *testing.T, p *replay.Program, text string) func(cuda.Device) (blocks.Allocator, error) {
	t.Helper()
	specs, err := bench.ParseSpecs(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(dev cuda.Device) (blocks.Allocator, error) { return specs[0].Make(context.Background(), p, dev) }
}

func run(t *testing.T, p *replay.Program, gpu GPU, o Options, text string) *Result {
	t.Helper()
	res, err := Run(t.Context(), p, gpu, o, maker(t, p, text))
	if err != nil {
		t.Fatal(err)
	}
	for i := range res.Checked.Mismatches {
		t.Error(&res.Checked.Mismatches[i])
	}
	return res
}

func open(t *testing.T, name string) *replay.Program {
	t.Helper()
	programs, err := replay.Open("../../../testdata/" + name + ".parquet")
	if err != nil {
		t.Fatal(err)
	}
	return programs[0]
}

// TestLikeBench compares runs on a simulated device with the results of gmbench for the same trace, of three streams. A device clears
// released memory during the time of the job, which a run does not have, so that clearing is left out.
func TestLikeBench(t *testing.T) {
	costs := sim.H200()
	costs[sim.Clear] = nil
	likeBench(t, open(t, "opt13b-fsdp4-LRV-r0"), costs, everything())
}

// TestClearingLikeBench compares runs that release memory and wait for it to be cleared, in a job that takes no time.
func TestClearingLikeBench(t *testing.T) {
	costs := sim.H200()
	costs[sim.Clear] = sim.Curve{{Bytes: 2 * mib, Cost: time.Millisecond}, {Bytes: 4 * mib, Cost: 2 * time.Millisecond}}
	likeBench(t, random(2, 3000, 512*mib), costs, everything())
}

// everything returns all allocators that have memory.
func everything() []bench.Spec {
	return slices.DeleteFunc(bench.AllSpecs(), func(s bench.Spec) bool { return s.Imaginary })
}

func likeBench(t *testing.T, p *replay.Program, costs sim.CostTable, specs []bench.Spec) {
	rows, err := bench.CompareOn(context.Background(), []*replay.Program{p}, specs, bench.GPU{Costs: costs}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range rows {
		gpu := NewSimulated()
		res := run(t, p, gpu, Options{Costs: costs}, specs[i].Text)
		if s := res.Stats; s.PeakAllocated != want.PeakAllocated || s.PeakReserved != want.PeakReserved {
			t.Errorf("%s: %+v, want %d allocated and %d reserved", specs[i].Text, s, want.PeakAllocated, want.PeakReserved)
		}
		total := res.Account.Total()
		if res.Account.MemoryCalls() != want.DriverCalls || total.Modelled.Nanoseconds() != want.DriverNS || total.Measured != total.Modelled {
			t.Errorf("%s: %d calls, %+v; want %d in %d ns", specs[i].Text, res.Account.MemoryCalls(), total, want.DriverCalls, want.DriverNS)
		}
		if res.PeakInUse != want.PeakReserved {
			t.Errorf("%s: %d bytes in use, want %d", specs[i].Text, res.PeakInUse, want.PeakReserved)
		}
		if gpu.Used() != 0 || !specs[i].Planned && res.Left != 0 {
			t.Errorf("%s: %d bytes are left, %d before everything was released", specs[i].Text, gpu.Used(), res.Left)
		}
	}
}

// TestContentsOfTrace reads back everything that a recorded job wrote.
func TestContentsOfTrace(t *testing.T) {
	p := open(t, "resnet152-V")
	res := run(t, p, NewSimulated(), Options{Costs: sim.H200(), Check: CheckAll}, "stitch")
	if c := res.Checked; c.Tensors != int64(len(p.Sizes)) || c.Words < 6*c.Tensors {
		t.Errorf("%d tensors and %d words were read back, of %d", c.Tensors, c.Words, len(p.Sizes))
	}
	sample := run(t, p, NewSimulated(), Options{Costs: sim.H200(), Check: CheckSample, Seed: 1}, "stitch").Checked
	if sample.Tensors < sampleTensors*3/4 || sample.Tensors > 3*sampleTensors {
		t.Errorf("%d tensors were read back", sample.Tensors)
	}
}

// random is a job on three streams that keeps up to limit bytes, and lends some of it to other streams.
func random(seed uint64, steps int, limit int64) *replay.Program {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &replay.Program{Name: "random", Align: 512}
	add := func(kind replay.Kind, t int32) {
		p.Kinds, p.Tensors = append(p.Kinds, kind), append(p.Tensors, t)
		p.Rows, p.TimesNS = append(p.Rows, int32(len(p.Rows))), append(p.TimesNS, 0)
	}
	var live, lent []int32
	var used int64
	take := func(from *[]int32) int32 {
		i := rng.IntN(len(*from))
		t := (*from)[i]
		*from = append((*from)[:i], (*from)[i+1:]...)
		return t
	}
	for range steps {
		size := []int64{0, 3, 4, 4096, 3 * mib / 2}[rng.IntN(5)] * (1 + rng.Int64N(6))
		switch n := rng.IntN(20); {
		case n < 11 && used+size <= limit:
			t := int32(len(p.Sizes))
			p.Sizes, p.Pools = append(p.Sizes, size), append(p.Pools, 0)
			p.Streams = append(p.Streams, []cuda.Stream{0, 0, 7, 9}[rng.IntN(4)])
			add(replay.Alloc, t)
			live, used = append(live, t), used+size
		case n < 18 && len(live) > 0:
			t := take(&live)
			used -= p.Sizes[t]
			add(replay.Free, t)
		case n == 18 && len(live) > 0:
			t := take(&live)
			lent = append(lent, t)
			add(replay.Request, t)
		case n == 19 && len(lent) > 0:
			t := take(&lent)
			used -= p.Sizes[t]
			add(replay.Complete, t)
		case n == 0:
			add(replay.Empty, 0)
		}
	}
	return p
}

// device opens the first device of the driver.
func device(t *testing.T) *driver.Device {
	t.Helper()
	l, err := driver.Load()
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestDriver runs allocators on the driver, each of which releases everything before the next begins.
func TestDriver(t *testing.T) {
	d := device(t)
	before, _, err := d.MemInfo()
	if err != nil {
		t.Fatal(err)
	}
	p := random(1, 6000, 64*mib)
	texts := []string{"stitch:piece_min=2MiB"}
	for _, spec := range everything() {
		if !spec.Planned {
			texts = append(texts, spec.Text)
		}
	}
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			res := run(t, p, d, Options{Costs: sim.H200(), Check: CheckAll, Seed: 3}, text)
			if res.Checked.Tensors < int64(len(p.Sizes))/2 || res.OOM != nil {
				t.Errorf("%d of %d tensors were read back, %+v", res.Checked.Tensors, len(p.Sizes), res.OOM)
			}
			if c := &res.Account; text == texts[0] && (c[sim.Unmap].Calls == 0 || c[sim.StreamWaitEvent].Calls == 0) {
				t.Errorf("%+v: the test is too easy", res.Account)
			}
			if total := res.Account.Total(); total.Measured <= 0 || total.Modelled <= 0 {
				t.Errorf("%+v", total)
			}
			if len(res.Malloc) != len(p.Sizes) || res.Malloc.Summary().Max <= 0 || res.Left != 0 {
				t.Errorf("%d latencies, %+v; %d bytes left", len(res.Malloc), res.Malloc.Summary(), res.Left)
			}
			if res.PeakInUse < res.Stats.PeakAllocated || res.PeakInUse > 2*res.Stats.PeakReserved {
				t.Errorf("%d bytes in use, %+v", res.PeakInUse, res.Stats)
			}
			if after, _, err := d.MemInfo(); err != nil || after != before && !onGPU {
				t.Errorf("%d bytes free, %d before: %v", after, before, err)
			}
		})
	}
}

// TestFull limits what may be taken.
func TestFull(t *testing.T) {
	p := random(2, 400, 256*mib)
	for name, gpu := range map[string]GPU{"sim": NewSimulated(), "driver": device(t)} {
		for _, spec := range everything() {
			text := spec.Text
			res := run(t, p, gpu, Options{Capacity: 32 * mib, Costs: sim.H200(), Check: CheckSample}, text)
			if res.OOM == nil || spec.Planned != (res.OOM.Row < 0) {
				t.Errorf("%s on %s: %+v", text, name, res.OOM)
			}
			if res.Stats.PeakReserved > 32*mib || res.PeakInUse > 34*mib && !onGPU {
				t.Errorf("%s on %s: %+v, %d in use", text, name, res.Stats, res.PeakInUse)
			}
		}
	}
}

// twice gives every third request of a size the address of the one before it.
type twice struct {
	blocks.Allocator
	last map[int64]cuda.Ptr
	same map[cuda.Ptr]int // how many tensors beyond one have the address
	n    int
}

func (w *twice) Malloc(size int64, stream cuda.Stream, pool blocks.Pool) (cuda.Ptr, error) {
	if w.n++; w.n%3 == 0 && w.last[size] != 0 {
		w.same[w.last[size]]++
		return w.last[size], nil
	}
	p, err := w.Allocator.Malloc(size, stream, pool)
	w.last[size] = p
	return p, err
}

func (w *twice) Free(p cuda.Ptr) error {
	if w.same[p] > 0 {
		w.same[p]--
		return nil
	}
	for size, last := range w.last {
		if last == p {
			delete(w.last, size)
		}
	}
	return w.Allocator.Free(p)
}

// TestTwice finds an allocator that gives memory to two tensors at once.
func TestTwice(t *testing.T) {
	p := random(3, 1000, 64*mib)
	for name, gpu := range map[string]GPU{"sim": NewSimulated(), "driver": device(t)} {
		res, err := Run(t.Context(), p, gpu, Options{Check: CheckAll}, func(dev cuda.Device) (blocks.Allocator, error) {
			a, err := blocks.NewStitch(dev, blocks.DefaultStitchConf())
			return &twice{Allocator: a, last: map[int64]cuda.Ptr{}, same: map[cuda.Ptr]int{}}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		c := res.Checked
		if c.Wrong == 0 || len(c.Mismatches) != int(min(c.Wrong, maxMismatches)) {
			t.Fatalf("%s: %d of %d tensors are wrong, %d mismatches", name, c.Wrong, c.Tensors, len(c.Mismatches))
		}
		m := c.Mismatches[0]
		text := fmt.Sprintf("tensor %d of row %d, %d bytes at %#x: 0x%08x written, 0x%08x found at byte 0, which tensor %d wrote",
			m.Tensor, p.Rows[m.Row], p.Sizes[m.Tensor], uint64(m.Addr), m.Expected, m.Found, m.Writer)
		if m.Error() != text || m.Writer <= m.Tensor || p.Sizes[m.Writer] != m.Size {
			t.Errorf("%s: %v, want %s", name, m.Error(), text)
		}
	}
}

// lossy is a device that writes only a limited number of words at a time.
type lossy struct {
	*Simulated
	words int64
}

func (l *lossy) MemsetD32Async(p cuda.Ptr, value uint32, words int64, s cuda.Stream) error {
	return l.Simulated.MemsetD32Async(p, value, min(words, l.words), s)
}

// TestLost finds contents that are missing from the second piece of a tensor on.
func TestLost(t *testing.T) {
	p := &replay.Program{
		Kinds: []replay.Kind{replay.Alloc, replay.Free}, Tensors: []int32{0, 0}, Rows: []int32{4, 5}, TimesNS: []int64{0, 0},
		Sizes: []int64{64 * mib}, Streams: []cuda.Stream{0}, Pools: []blocks.Pool{0},
	}
	for words, wrong := range map[int64]int64{mib / 2: 1, 16*mib - 1: 1, 16 * mib: 0} {
		res, err := Run(t.Context(), p, &lossy{NewSimulated(), words}, Options{Check: CheckSample}, maker(t, p, "torch"))
		if err != nil {
			t.Fatal(err)
		}
		if c := res.Checked; c.Wrong != wrong || wrong == 1 && (c.Mismatches[0].Offset < 4*words || c.Mismatches[0].Row != 4) {
			t.Errorf("%d words written: %+v", words, c)
		}
	}
}

// refusing is a device on which access cannot be set.
type refusing struct {
	cuda.Device
	err error
}

func (r *refusing) SetAccess(cuda.Ptr, int64) error { return r.err }

// TestFailure: a run ends with the error of a call, and nothing stays taken.
func TestFailure(t *testing.T) {
	p := random(4, 3000, 64*mib)
	gpu := NewSimulated()
	failed := errors.New("failed")
	n := 0
	_, err := Run(t.Context(), p, gpu, Options{Done: func() { n++ }}, func(dev cuda.Device) (blocks.Allocator, error) {
		return blocks.NewStitch(&refusing{dev, failed}, blocks.DefaultStitchConf())
	})
	if !errors.Is(err, failed) || !strings.HasPrefix(err.Error(), fmt.Sprintf("replay random: row %d: ", n)) {
		t.Errorf("after %d steps: %v", n, err)
	}
	if gpu.Used() != 0 {
		t.Errorf("%d bytes are left", gpu.Used())
	}
}
