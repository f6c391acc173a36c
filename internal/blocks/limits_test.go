package blocks

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// everyAllocator returns all allocators, the lower bound included.
func everyAllocator(t *testing.T) []Spec {
	t.Helper()
	floor, err := ParseSpec("floor")
	if err != nil {
		t.Fatal(err)
	}
	return append(candidates(t), floor)
}

// TestLargestSize: a request of MaxSize is one that no device meets, and a larger one is none. One of no bytes is met by nothing.
func TestLargestSize(t *testing.T) {
	for _, spec := range everyAllocator(t) {
		a := spec.open(t, sim.New(1<<30, sim.CostTable{}))
		var oom *OOMError
		if _, err := a.Malloc(MaxSize, 0, 0); !errors.As(err, &oom) {
			t.Errorf("%s: %d bytes: %v", spec.Text, int64(MaxSize), err)
		}
		if _, err := a.Malloc(MaxSize+1, 0, 0); err == nil || errors.As(err, &oom) {
			t.Errorf("%s: %d bytes: %v", spec.Text, int64(MaxSize+1), err)
		}
		if p, err := a.Malloc(0, 0, 0); p != 0 || err != nil || a.Stats().Allocated != 0 {
			t.Errorf("%s: no bytes: %#x, %v, %+v", spec.Text, p, err, a.Stats())
		}
	}
}

// TestRecordStreamOfWrongAddresses: only a block that is handed out can be lent, and 0 stands for none.
func TestRecordStreamOfWrongAddresses(t *testing.T) {
	for _, spec := range everyAllocator(t) {
		for _, size := range []int64{1000, 3 << 20} {
			a := spec.open(t, sim.New(0, sim.CostTable{}))
			p, err := a.Malloc(size, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(a.RecordStream(p, 1), a.RecordStream(0, 1)); err != nil {
				t.Errorf("%s: %v", spec.Text, err)
			}
			if err := a.RecordStream(p+512, 1); err == nil {
				t.Errorf("%s: an address in a block of %d bytes: no error", spec.Text, size)
			}
			if err := a.Free(p); err != nil {
				t.Fatal(err)
			}
			if err := a.RecordStream(p, 1); err == nil {
				t.Errorf("%s: a block of %d bytes that was freed: no error", spec.Text, size)
			}
		}
	}
}

// TestStitchConfLimits holds what settings may be.
func TestStitchConfLimits(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		change func(c *StitchConf)
		valid  bool
	}{
		{func(c *StitchConf) {}, true},
		{func(c *StitchConf) { c.Slack = 1000 }, true},
		{func(c *StitchConf) { c.Slack = 1000.5 }, false},
		{func(c *StitchConf) { c.Slack = -0.5 }, false},
		{func(c *StitchConf) { c.Slack = math.NaN() }, false},
		{func(c *StitchConf) { c.PieceMin = 2 * mib }, true},
		{func(c *StitchConf) { c.PieceMin = 0 }, false},
		{func(c *StitchConf) { c.PieceMin = 3 * mib }, false},
		{func(c *StitchConf) { c.PieceMin = c.PieceMax }, true},
		{func(c *StitchConf) { c.PieceMin = c.PieceMax + 2*mib }, false},
		{func(c *StitchConf) { c.PieceMax = 65 * mib }, false},
		{func(c *StitchConf) { c.PieceMax = regionSize / 4 }, true},
		{func(c *StitchConf) { c.PieceMax = regionSize/4 + 2*mib }, false},
		{func(c *StitchConf) { c.Pieces, c.Parts, c.Aliases = 1, 1, 1 }, true},
		{func(c *StitchConf) { c.Pieces, c.Parts, c.Aliases = mib, mib, mib }, true},
		{func(c *StitchConf) { c.Pieces = 0 }, false},
		{func(c *StitchConf) { c.Pieces = mib + 1 }, false},
		{func(c *StitchConf) { c.Parts = 0 }, false},
		{func(c *StitchConf) { c.Aliases = 0 }, false},
		{func(c *StitchConf) { c.Aliases = mib + 1 }, false},
	} {
		conf := DefaultStitchConf()
		c.change(&conf)
		if _, err := NewStitch(sim.New(0, sim.CostTable{}), conf); (err == nil) != c.valid {
			t.Errorf("%+v: %v, want it to be valid: %v", conf, err, c.valid)
		}
	}
}

// TestStitchLeavesSmall: requests of up to 1 MiB, and those of private pools, are left to PyTorch's allocator.
func TestStitchLeavesSmall(t *testing.T) {
	for _, c := range []struct {
		size     int64
		pool     Pool
		stitches bool
	}{{1 << 20, 0, false}, {1<<20 + 1, 0, true}, {40 << 20, 1, false}} {
		s, err := NewStitch(sim.New(0, sim.CostTable{}), DefaultStitchConf())
		if err == nil {
			_, err = s.Malloc(c.size, 0, c.pool)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := s.torch.Stats().Allocated == 0; got != c.stitches {
			t.Errorf("%d bytes of pool %d are left to PyTorch's allocator: %v", c.size, c.pool, !got)
		}
	}
}

// TestSettings holds which settings are read, and what is said of others.
func TestSettings(t *testing.T) {
	for text, want := range map[string]string{
		"torch,native":               "torch native",
		"torch:max_split_size_mb:32": "torch:max_split_size_mb:32",
		"torch,max_split_size_mb:32": "torch:max_split_size_mb:32",
		"native,torch:max_split_size_mb:32,garbage_collection_threshold:0.5,stitch": "native " +
			"torch:max_split_size_mb:32,garbage_collection_threshold:0.5 stitch",
		"gmlake-code:reuseLimit=2147483647": "gmlake-code:reuseLimit=2147483647",
		"gmlake-code:reuseLimit=2147483648": `!setting reuseLimit: "2147483648" is not a number of 0 or more`,
		"gmlake-code:reuseLimit=0.5":        "!0.5 is below 1",
		"gmlake-code:reuseLimit=0":          "!0 is below 1",
		"gmlake-code:reuseLimit=-1":         `!"-1" is not a number of 0 or more`,
		"gmlake-code:reuseLimit=NaN":        `!"NaN" is not a number of 0 or more`,
		"gmlake-code:defragLevel=2":         "gmlake-code:defragLevel=2",
		"gmlake-code:defragLevel=3":         "!3 is neither 0, 1 nor 2",
		"gmlake-code:autoGC=0":              "gmlake-code:autoGC=0",
		"gmlake-code:autoGC=-1":             `!"-1" is below 0`,
		"stitch:slack=0":                    "stitch:slack=0",
		"torch,nothing":                     `!unknown allocator "nothing"`,
		"nothing:slack=1":                   `!unknown allocator "nothing"`,
		"slack=1":                           `!setting "slack=1" comes before any allocator`,
		"native:slack=1":                    "!has no settings",
	} {
		specs, err := ParseSpecs(text)
		var all []string
		for _, s := range specs {
			all = append(all, s.Text)
		}
		if want, fails := strings.CutPrefix(want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		} else if got := strings.Join(all, " "); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestFloorWaits: the lower bound waits for a stream only where there is no room without.
func TestFloorWaits(t *testing.T) {
	for _, c := range []struct {
		size, pending int64 // MiB
		fails         bool
	}{{6, 4, false}, {7, 0, false}, {10, 0, false}, {11, 0, true}} {
		t.Run(fmt.Sprint(c.size), func(t *testing.T) {
			dev := sim.New(10<<20, sim.CostTable{})
			f, err := NewFloor(dev, 512)
			if err != nil {
				t.Fatal(err)
			}
			p, err := f.Malloc(4<<20, 0, 0)
			if err == nil {
				err = f.RecordStream(p, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			dev.Hold(func() { err = f.Free(p) })
			if err != nil {
				t.Fatal(err)
			}
			if _, err = f.Malloc(c.size<<20, 0, 0); (err != nil) != c.fails {
				t.Errorf("error %v, want one: %v", err, c.fails)
			}
			if got := f.Holdings()[0].Pending >> 20; got != c.pending {
				t.Errorf("%d MiB are pending, want %d", got, c.pending)
			}
		})
	}
}

// TestPendingBySize: blocks of up to 1 MiB are small ones.
func TestPendingBySize(t *testing.T) {
	for _, c := range []struct{ size, small, large int64 }{{1 << 20, 1 << 20, 0}, {1<<20 + 512, 0, 1<<20 + 512}} {
		conf := allocconf.Default()
		conf.Expandable = true
		dev := sim.New(0, sim.CostTable{})
		a, err := NewTorch(dev, conf)
		if err != nil {
			t.Fatal(err)
		}
		p, err := a.Malloc(c.size, 0, 0)
		if err == nil {
			err = a.RecordStream(p, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		dev.Hold(func() { err = a.Free(p) })
		if small, large := a.Pending(); err != nil || small != c.small || large != c.large {
			t.Errorf("%d bytes: %d and %d are pending; %v", c.size, small, large, err)
		}
	}
}

// TestGrowth: only an expandable segment can grow, by what is free behind its last block.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		expandable, freed bool
		want              int64
	}{{true, false, 0}, {true, true, 12 << 20}, {false, true, 0}} {
		conf := allocconf.Default()
		conf.Expandable = c.expandable
		a, err := NewTorch(sim.New(0, sim.CostTable{}), conf)
		if err != nil {
			t.Fatal(err)
		}
		var p [2]cuda.Ptr
		for i, size := range []int64{8 << 20, 12 << 20} {
			if p[i], err = a.Malloc(size, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if c.freed {
			if err := a.Free(p[1]); err != nil {
				t.Fatal(err)
			}
		}
		var got int64
		for _, h := range a.Holdings() {
			got += h.Growth
		}
		if got != c.want {
			t.Errorf("%+v: %d bytes of growth", c, got)
		}
	}
}

// strict is a device that refuses to unmap nothing, as a driver does.
type strict struct{ failing }

var errNothing = errors.New("nothing to unmap")

func (d *strict) Unmap(p cuda.Ptr, size int64) error {
	if size == 0 {
		return errNothing
	}
	return d.failing.Unmap(p, size)
}

// TestFailedMapReturnsAddresses: where a mapping fails, even the first, its memory and its addresses are free again. Those of an expandable segment
// stay for the next request.
func TestFailedMapReturnsAddresses(t *testing.T) {
	for name, ranges := range map[string]int64{"gmlake": 0, "gmlake-code": 0, "expandable": 1} {
		for fail := 1; fail <= 3; fail++ {
			spec, err := ParseSpec(name)
			if err != nil {
				t.Fatal(err)
			}
			dev := &strict{failing{Device: sim.New(0, sim.CostTable{}), failMaps: fail}}
			if _, err := spec.open(t, dev).Malloc(60<<20, 0, 0); !errors.Is(err, errBroken) || errors.Is(err, errNothing) {
				t.Errorf("%s: %v", name, err)
			}
			if n := dev.Calls(sim.AddressReserve) - dev.Calls(sim.AddressFree); n != ranges || dev.Used() != 0 {
				t.Errorf("%s: %d ranges of addresses and %d bytes are left after map %d failed", name, n, dev.Used(), fail)
			}
		}
	}
}

// TestTorchSettings: without settings an allocator has those of the recording, but for expandable segments, which it has by name or by setting.
func TestTorchSettings(t *testing.T) {
	for _, c := range []struct {
		spec, recorded string
		expandable     bool
		maxSplit       int64 // MiB
	}{
		{"torch", "", false, 0},
		{"expandable", "", true, 0},
		{"torch:expandable_segments:True", "", true, 0},
		{"expandable:max_split_size_mb:64", "", true, 64},
		{"torch", "max_split_size_mb:32,expandable_segments:True", false, 32},
		{"expandable", "max_split_size_mb:32", true, 32},
		{"torch:max_split_size_mb:64", "max_split_size_mb:32,expandable_segments:True", false, 64},
	} {
		spec, err := ParseSpec(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		a, err := spec.New(sim.New(0, sim.CostTable{}), Job{AllocConf: c.recorded})
		if err != nil {
			t.Fatal(err)
		}
		if conf := a.(*Torch).conf; conf.Expandable != c.expandable || conf.MaxSplitSize != c.maxSplit<<20 {
			t.Errorf("%s, recorded with %q: %+v", c.spec, c.recorded, conf)
		}
	}
}
