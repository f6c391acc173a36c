package why

import (
	"context"
	"math/rand/v2"
	"testing"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// job is a program in the making. Each step takes a millisecond and a row.
type job struct{ replay.Program }

func newJob() *job {
	return &job{replay.Program{Name: "job", Align: 512}}
}

func (j *job) step(kind replay.Kind, tensor int32) {
	row := int32(len(j.Kinds))
	j.Kinds, j.Tensors = append(j.Kinds, kind), append(j.Tensors, tensor)
	j.Rows, j.TimesNS = append(j.Rows, row), append(j.TimesNS, int64(row)*1e6)
}

func (j *job) alloc(size int64, stream cuda.Stream, pool blocks.Pool) int32 {
	t := int32(len(j.Sizes))
	j.Sizes, j.Streams, j.Pools = append(j.Sizes, size), append(j.Streams, stream), append(j.Pools, pool)
	j.step(replay.Alloc, t)
	return t
}

func (j *job) free(t int32) { j.step(replay.Free, t) }

// TestParts checks each part on a job that loses bytes by that cause only.
func TestParts(t *testing.T) {
	for name, c := range map[string]struct {
		alloc string
		job   func(j *job)
		want  map[string]int64
	}{
		"rounding, and the rest of a new segment": {"torch", func(j *job) {
			j.alloc(100, 0, 0)
		}, map[string]int64{"rounding": 412, "unused growth": 2*mib - 512}},
		"a tail that is not split off": {"torch", func(j *job) {
			j.alloc(19*mib+512*kib, 0, 0)
		}, map[string]int64{"split tails": 512 * kib}},
		"two segments": {"torch", func(j *job) {
			j.alloc(15*mib, 0, 0)
			first := j.alloc(6*mib, 0, 0)
			j.alloc(6*mib, 0, 0)
			j.free(first)
			j.alloc(15*mib, 0, 0)
		}, map[string]int64{"large fragments": (20 - 6) * mib, "split tails": 2 * mib}},
		"small blocks": {"torch", func(j *job) {
			j.alloc(512*kib, 0, 0)
			j.alloc(20*mib, 0, 0)
		}, map[string]int64{"small fragments": 2*mib - 512*kib}},
		"free as a whole": {"torch", func(j *job) {
			j.free(j.alloc(30*mib, 0, 0))
			j.alloc(32*mib, 0, 0)
		}, map[string]int64{"free segments": 30 * mib}},
		"another stream": {"torch", func(j *job) {
			j.free(j.alloc(30*mib, 7, 0))
			j.alloc(30*mib, 0, 0)
		}, map[string]int64{"stranded by stream": 30 * mib}},
		"another pool": {"torch", func(j *job) {
			j.free(j.alloc(30*mib, 0, 1))
			j.alloc(30*mib, 0, 0)
		}, map[string]int64{"private pools": 30 * mib}},
		"waiting": {"torch", func(j *job) {
			j.step(replay.Request, j.alloc(30*mib, 7, 0))
			j.alloc(30*mib, 0, 0)
		}, map[string]int64{"pending record_stream": 30 * mib}},
		"pages": {"expandable", func(j *job) {
			j.alloc(21*mib, 0, 0)
		}, map[string]int64{"unused growth": 19 * mib}},
		"a hole in pages": {"expandable", func(j *job) {
			first := j.alloc(10*mib, 0, 0)
			j.alloc(10*mib, 0, 0)
			j.free(first)
			j.alloc(20*mib, 0, 0)
		}, map[string]int64{"large fragments": 10 * mib}},
		"chunks": {"gmlake", func(j *job) {
			j.alloc(3*mib, 0, 0)
		}, map[string]int64{"split tails": 1 * mib}},
		"chunks of the code": {"gmlake-code", func(j *job) {
			j.alloc(3*mib, 0, 0)
		}, map[string]int64{"split tails": 1 * mib, "unused growth": 16 * mib}},
		"a piece": {"stitch", func(j *job) {
			j.alloc(7*mib, 0, 0)
		}, map[string]int64{"unused growth": 1 * mib}},
		"a plan": {"planned", func(j *job) {
			j.free(j.alloc(30*mib, 0, 0))
			j.alloc(20*mib, 0, 0)
			j.alloc(12*mib, 0, 0)
			j.step(replay.Empty, 0)
		}, map[string]int64{}},
		"the driver": {"native", func(j *job) {
			j.alloc(3*mib, 0, 0)
			j.alloc(100, 0, 0)
		}, map[string]int64{"rounding": 412, "split tails": 1 * mib}},
		"the bound": {"floor", func(j *job) {
			j.step(replay.Request, j.alloc(1000, 7, 0))
			j.alloc(100, 0, 0)
		}, map[string]int64{"rounding": 412, "pending record_stream": 1024}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob()
			c.job(j)
			a := explainJob(t, j, c.alloc, 0)
			for _, part := range a.Parts {
				if part.Bytes != c.want[part.Name] {
					t.Errorf("%s: %d bytes, want %d", part.Name, part.Bytes, c.want[part.Name])
				}
			}
		})
	}
}

func explainJob(t *testing.T, j *job, alloc string, capacity int64) *Account {
	t.Helper()
	specs, err := bench.ParseSpecs(alloc)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ExplainAll(context.Background(), &j.Program, specs[:1], bench.GPU{Capacity: capacity, Costs: sim.H200()}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// TestGaps checks the arena of a plan when most of it is in use.
func TestGaps(t *testing.T) {
	j := newJob()
	first := j.alloc(8*mib, 0, 0)
	j.alloc(8*mib, 0, 0)
	j.free(first)
	j.alloc(12*mib, 0, 0)
	j.Placements = []blocks.Placement{{Size: 8 * mib}, {Size: 8 * mib, Offset: 8 * mib}, {Size: 12 * mib, Offset: 16 * mib}}
	j.Arenas = []int64{28 * mib}
	a := explainJob(t, j, "planned", 0)
	if a.Row != 3 || a.Requested != 20*mib || a.Reserved != 28*mib || a.Parts[gaps].Bytes != 8*mib {
		t.Errorf("%+v", a)
	}
	if a := explainJob(t, j, "planned", 20*mib); a.OOM == nil || a.OOM.Row != -1 || a.Reserved != 0 || len(a.Parts) != int(kinds) {
		t.Errorf("arenas that do not fit: %+v", a)
	}
}

// TestPins: the oldest of the blocks that hold a segment is named, and the segment with the most free bytes is the first.
func TestPins(t *testing.T) {
	j := newJob()
	small := j.alloc(30*mib, 0, 0)
	j.free(small)
	j.alloc(4*mib, 0, 0) // row 2, in 30 MiB
	j.alloc(5*mib, 0, 0) // row 3, after it
	large := j.alloc(100*mib, 7, 0)
	j.free(large)
	j.alloc(2*mib, 7, 0) // row 6, in 100 MiB
	j.alloc(200*mib, 0, 0)
	a := explainJob(t, j, "torch", 0)
	want := []Pin{
		{Segment: a.Pins[0].Segment, Reserved: 100 * mib, Live: 2 * mib, Blocks: 1, Block: 2 * mib, AgeNS: 1e6, Stream: 7},
		{Segment: a.Pins[1].Segment, Reserved: 30 * mib, Live: 9 * mib, Blocks: 2, Block: 4 * mib, AgeNS: 5e6},
	}
	if len(a.Pins) != 2 || a.Pins[0] != want[0] || a.Pins[1] != want[1] {
		t.Errorf("%+v, want %+v", a.Pins, want)
	}
}

// TestNothing: a first request that cannot be met, and a job without requests.
func TestNothing(t *testing.T) {
	j := newJob()
	j.alloc(64*mib, 0, 0)
	for _, spec := range bench.AllSpecs() {
		a := explainJob(t, j, spec.Text, 32*mib)
		if a.OOM == nil || a.Reserved != 0 || a.Requested != 0 || len(a.Parts) != int(kinds) {
			t.Errorf("%s: %+v", spec.Text, a)
		}
		if a := explainJob(t, newJob(), spec.Text, 0); a.OOM != nil || a.Reserved != 0 || a.Pins == nil {
			t.Errorf("%s, no requests: %+v", spec.Text, a)
		}
	}
}

// FuzzSums makes jobs of several streams and pools, with frees that wait, on GPUs that may be too small.
func FuzzSums(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(seed, uint16(200*seed), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16, room uint8) {
		j := randomJob(rand.New(rand.NewPCG(seed, 1)), int(steps)%1000)
		j.layOut()
		capacity := int64(room) * 16 * mib // 0 is no limit
		for _, spec := range bench.AllSpecs() {
			a := explainJob(t, j, spec.Text, capacity)
			lost := a.Reserved - a.Requested
			for _, part := range a.Parts {
				lost -= part.Bytes
				if part.Bytes < 0 {
					t.Errorf("%s: %d bytes of %s", spec.Text, part.Bytes, part.Name)
				}
			}
			if lost != 0 {
				t.Errorf("%s: parts are %d bytes short", spec.Text, lost)
			}
			checkPins(t, a)
		}
	})
}

// layOut gives a job a plan in which nothing lies where something else ever does.
func (j *job) layOut() {
	j.Arenas = []int64{512}
	for _, size := range j.Sizes {
		j.Placements = append(j.Placements, blocks.Placement{Size: size, Offset: j.Arenas[0]})
		j.Arenas[0] += (size + 511) / 512 * 512
	}
}

func randomJob(r *rand.Rand, steps int) *job {
	j := newJob()
	var live, waiting []int32
	take := func(from *[]int32) int32 {
		i := r.IntN(len(*from))
		t := (*from)[i]
		*from = append((*from)[:i], (*from)[i+1:]...)
		return t
	}
	for range steps {
		switch k := r.IntN(10); {
		case k < 5 || len(live) == 0:
			size := r.Int64N(1 << (4 + r.IntN(23)))
			live = append(live, j.alloc(size, cuda.Stream(r.IntN(3)), blocks.Pool(max(r.IntN(6)-3, 0))))
		case k < 7:
			j.free(take(&live))
		case k < 8:
			t := take(&live)
			j.step(replay.Request, t)
			waiting = append(waiting, t)
		case k < 9 && len(waiting) > 0:
			j.step(replay.Complete, take(&waiting))
		case r.IntN(8) == 0:
			j.step(replay.Empty, 0)
		}
	}
	return j
}
