package estimate

import (
	"fmt"
	"testing"

	"gm/formats/trace"
	"gm/internal/models/synth"
	"gm/internal/trace/overview"
)

// TestOutsideRecorded holds what is estimated outside of PyTorch's allocator against recordings: NCCL's buffers, its code, and all that NVML saw.
// What is off is in docs/estimate.md.
func TestOutsideRecorded(t *testing.T) {
	const model, mebi = "llama-8b,layers=8,seq=4Ki,", 1 << 20
	const mixtral, deepseek = "mixtral-8x7b,layers=8,seq=4Ki,", "deepseek-v3,layers=8,seq=4Ki,"
	for _, c := range []struct {
		file, job          string
		buffers, code, all int64 // MiB more than recorded
	}{
		{"parallel/dp-r0", model + "ranks=2", 0, 61, 62},
		{"parallel/tp-r0", model + "tp=2", -64, 0, -66}, // this rank sent the others their parts of the parameters, on 32 channels
		{"parallel/cp-r0", model + "cp=2", 0, 0, 0},
		{"parallel/cp-r1", model + "cp=2", 0, 0, 0},
		{"parallel/pp-r0", model + "pp=2,stage=0", 0, 0, 0},
		{"parallel/pp-r1", model + "pp=2,stage=1", 0, 0, 0},
		{"parallel/gqa-r0", model + "tp=2", -64, 0, -66},
		{"parallel/moe-r0", mixtral + "ranks=2,ep=2", -192, 0, -196}, // more channels than are known of
		{"parallel/moe-scores-r1", mixtral + "ranks=2,ep=2", -192, 0, -196},
		{"parallel/mla-r0", deepseek + "ranks=2,ep=2", -192, 0, -196},
		// Recorded earlier, of another program and, it seems, with another version of NCCL.
		{"captures/torchrun-r0", model + "ranks=2,zero=0", 0, 150, -8},
		{"captures/opt1.3b", model + "ranks=1", 0, 0, -84},
	} {
		job, err := synth.Parse(c.job, synth.Strategy{})
		if err != nil {
			t.Fatal(err)
		}
		want := recordedOutside(t, "../../../testdata/"+c.file+".parquet")
		got := outsideOf(job)
		off := []int64{(got.Buffers - want.Buffers) / mebi, (got.Code - want.Code) / mebi, (got.Sum() - want.Sum()) / mebi}
		if wanted := []int64{c.buffers, c.code, c.all}; fmt.Sprint(off) != fmt.Sprint(wanted) {
			t.Errorf("%s: MiB more than recorded: buffers, code and all %v, want %v", c.file, off, wanted)
		}
	}
}

// recordedOutside reads what a recorded process had outside of PyTorch's allocator: what it got from the driver by its peak, and what NVML saw besides.
func recordedOutside(t *testing.T, file string) Outside {
	t.Helper()
	d := mustOverview(t, file).Devices[0].Driver
	found := Outside{Process: d.Peak + d.Reconciliation.Unexplained - d.AtPeak(overview.PyTorch)}
	for _, a := range d.Accounts {
		if a.By == overview.NCCL && a.Counted {
			found.Process -= a.AtPeak
			if trace.Kind(a.Kind) == trace.KindModule {
				found.Code += a.AtPeak
			} else {
				found.Buffers += a.AtPeak
			}
		}
	}
	return found
}

// mustOverview reads a recording.
func mustOverview(t *testing.T, file string) *overview.Overview {
	t.Helper()
	r, err := trace.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o, err := overview.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestGroups counts communicators: those of the same GPUs are one, and a stage between others has two neighbours.
func TestGroups(t *testing.T) {
	const ring, pair = ringChannels * channel, pairChannels * channel
	for _, c := range []struct {
		job          string
		groups       int
		rings, pairs int64
	}{
		{"llama-8b", 0, 0, 0},
		{"llama-8b,ranks=8", 1, 1, 0},
		{"llama-8b,tp=8", 1, 1, 0},
		{"llama-8b,cp=4", 1, 1, 1},
		{"llama-8b,cp=4,ranks=2", 2, 1, 1},         // the ranks are all GPUs
		{"llama-8b,ranks=4,tp=2", 3, 3, 0},         // and all GPUs have one of their own
		{"llama-8b,pp=4,stage=0", 1, 0, 1},         // which sends and receives alone
		{"llama-8b,pp=4,stage=2,tp=2", 3, 2, 2},    // stages, matrices, all
		{"mixtral-8x7b,ranks=8,ep=8", 2, 1, 7},     // all ranks split experts, through a communicator for that
		{"mixtral-8x7b,ranks=8,ep=4", 3, 2, 3},     // and two have the same ones
		{"deepseek-v3,ranks=64,ep=16", 3, 2, 7},    // 7 others are on the host
		{"llama-405b,ranks=8,tp=8,pp=16", 4, 3, 1}, // what docs/estimate.md has
	} {
		job, err := synth.Parse(c.job, synth.Strategy{})
		if err != nil {
			t.Fatal(err)
		}
		groups, want := groupsOf(job), int64(c.groups)*communicator+c.rings*ring+c.pairs*pair
		if got := outsideOf(job).Buffers; len(groups) != c.groups || got != want {
			t.Errorf("%s: %d communicators of %d bytes, want %d of %d", c.job, len(groups), got, c.groups, want)
		}
	}
}
