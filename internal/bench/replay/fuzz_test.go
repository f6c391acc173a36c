package replay

import (
	"bytes"
	"context"
	"testing"

	"gm/formats/trace"
	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/dsa/solvers"
)

// odd reads bytes as the rows of a trace, four for each row. Most of these traces break no rule and resemble no recording.
func odd(data []byte) []trace.Event {
	sizes := [...]int64{1, 512, 1 << 20, 2 << 20, 20 << 20, 100 << 20, 1 << 38, 1 << 46}
	var rows []trace.Event
	var ids []int64
	for i := 0; i+4 <= len(data) && len(rows) < 400; i += 4 {
		b := data[i : i+4]
		e := trace.Event{
			TimeNS: int64(i), Op: trace.Op(b[0] % 11), Size: sizes[b[1]%8], Addr: uint64(b[2]%32) << 20, Stream: int64(b[3]%4) - 1,
			Device: int32(b[3] >> 6), Pool: int32(b[3] >> 5 & 1), Level: trace.Level(b[1] >> 7), Tag: int32(b[2] >> 6),
		}
		switch e.Op {
		case trace.OpAlloc:
			e.ID = int64(len(ids) + 1)
			ids = append(ids, e.ID)
		case trace.OpFree, trace.OpFreeRequested, trace.OpFreeCompleted:
			if len(ids) == 0 {
				continue
			}
			e.ID = ids[int(b[1])%len(ids)]
		}
		rows = append(rows, e)
	}
	return rows
}

// oddTrace writes those rows that follow the rules.
func oddTrace(t *testing.T, data []byte) *trace.Reader {
	var kept trace.Batch
	check := trace.Validator{}
	for _, e := range odd(data) {
		one := &trace.Batch{}
		one.Append(e)
		if check.Check(one) == nil {
			kept.Append(e)
		}
	}
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{AllocConf: map[bool]string{false: "", true: "max_split_size_mb:32"}[len(data)%2 == 1]})
	for _, text := range []string{trace.PreexistingTag(0), trace.PreexistingTag(3 << 20), "tag"} {
		w.Strings().Code(text)
	}
	if w.Write(&kept) != nil || w.Close() != nil {
		t.Skip("the rows break a rule together")
	}
	r, err := trace.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "odd")
	if err != nil {
		t.Skip(err)
	}
	return r
}

// FuzzReplay replays traces that no allocator would write: nothing may panic, and no allocator may reserve more than there is.
func FuzzReplay(f *testing.F) {
	f.Add([]byte("\x04\x05\x01\x00\x00\x01\x01\x00\x02\x00\x00\x00\x03\x00\x00\x00"))
	f.Add([]byte("\x04\x04\x41\x00\x00\x02\x41\x00\x00\x02\x43\x00\x06\x04\x45\x00\x00\x01\x00\x00\x05\x04\x01\x00"))
	const capacity = 256 << 20
	specs, err := blocks.ParseSpecs("gmlake-code:fragLimit=8MiB,reuseLimit=4,autoGC=0")
	if err != nil {
		f.Fatal(err)
	}
	specs = append(specs, blocks.AllSpecs()...)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Verify(oddTrace(t, data), capacity); err != nil {
			t.Log(err)
		}
		programs, err := Load(oddTrace(t, data))
		if err != nil {
			t.Skip(err)
		}
		for _, p := range programs {
			for _, spec := range specs {
				dev := sim.New(capacity, sim.H200())
				a, err := spec.New(dev, jobOf(t, p, spec))
				if err != nil {
					continue
				}
				res, err := Run(t.Context(), p, a, dev)
				if err != nil {
					t.Log(err)
					continue
				}
				if res.Stats.PeakReserved > capacity {
					t.Errorf("%s reserves %d of %d", spec.Text, res.Stats.PeakReserved, capacity)
				}
			}
		}
	})
}

// jobOf returns the description of a program for an allocator, with a plan if it needs one.
func jobOf(tb testing.TB, p *Program, spec blocks.Spec) blocks.Job {
	tb.Helper()
	job := blocks.Job{Align: p.Align}
	if !spec.Planned {
		return job
	}
	var err error
	if job.Placements, job.Arenas, err = p.Plan(context.Background(), solvers.Auto()); err != nil {
		tb.Fatal(err)
	}
	return job
}
