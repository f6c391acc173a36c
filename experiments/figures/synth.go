package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gm/formats/trace"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/trace/overview"
	"gm/internal/units"
)

// The peak of a synthetic trace may differ from that of a recording of the same settings by so much, and the allocations of an
// iteration by so much.
const (
	synthPeak   = 0.10
	synthAllocs = 0.20
)

// A million events of the largest model, on the largest number of ranks, may take so much.
const (
	synthLarge       = "gpt-65b,batch=1,seq=4Ki,ranks=64,rank=3"
	synthLargeEvents = 1_000_000
	synthLargeTime   = 10 * time.Second
	synthLargeMemory = 300 << 20
)

// recordedJob is what was recorded: lengths are those of its steps.
type recordedJob struct {
	model, strategy string
	lengths         string
}

// recordedJobs returns the settings of the recordings of transformers, by name.
func recordedJobs() map[string]recordedJob {
	const short, long = "707/375/263/348/291/341/356/619/498/273", "707/375/263/348/852/291/943/965"
	return map[string]recordedJob{
		"opt1.3b-N":            {"opt-1.3b,batch=32", "N", "768/768/768/768/768/768"},
		"opt1.3b-V":            {"opt-1.3b,batch=32", "V", short},
		"opt1.3b-LRV":          {"opt-1.3b,batch=32", "LRV", short},
		"opt13b-LRV":           {"opt-13b,batch=16", "LRV", long},
		"opt13b-fsdp4-LRV-r0":  {"opt-13b,batch=16,ranks=4,rank=0", "LRV", "669/645/460/869/439/491/510/392"},
		"neox20b-LR":           {"gpt-neox-20b,batch=12", "LR", "1024/1024/1024/1024/1024/1024"},
		"neox20b-LRV":          {"gpt-neox-20b,batch=12", "LRV", long},
		"neox20b-fsdp4-LRV-r1": {"gpt-neox-20b,batch=12,ranks=4,rank=1", "LRV", "405/726/721/434/978/658/1005/614"},
		"gpt2m-V":              {"gpt2-medium,batch=16", "V", "924/579/247/135/220/954/724/163/815/837"},
		"llama7b8l-RV":         {"llama-7b,layers=8,batch=1", "RV", "61651/40425/33258/38708/35056"},
	}
}

// measureSynth holds synthetic traces against recordings of the same settings, and makes a large one.
func measureSynth(e *experiment) error {
	measured := 0
	for _, s := range e.traces {
		job, ok := recordedJobs()[s.name]
		if !ok {
			continue
		}
		measured++
		if err := e.compareSynth(s, job); err != nil {
			return err
		}
	}
	if measured == 0 {
		return nil
	}
	return e.largeSynth()
}

// compareSynth makes a trace by the settings of a recording. Both go through the same counting, and through PyTorch's allocator.
func (e *experiment) compareSynth(s sample, job recordedJob) error {
	file := filepath.Join(e.dir, "synth.parquet")
	steps := strconv.Itoa(strings.Count(job.lengths, "/") + 1)
	if _, err := gmtraceSynth(file, job.model+",seq="+job.lengths, "--strategy", job.strategy, "--steps", steps); err != nil {
		return err
	}
	recorded, err := countTrace(s.trace)
	if err != nil {
		return err
	}
	made, err := countTrace(file)
	if err != nil {
		return err
	}
	peak, allocs := made.peak/recorded.peak, made.allocs/recorded.allocs
	e.add("synth "+s.name+", peak", fmt.Sprintf("%s, recorded %s: %.4f", units.Bytes(int64(made.peak)), units.Bytes(int64(recorded.peak)), peak),
		fmt.Sprintf("within %.0f %%", 100*synthPeak), math.Abs(peak-1) <= synthPeak)
	e.add("synth "+s.name+", allocations", fmt.Sprintf("%.0f an iteration, recorded %.0f: %.4f", made.allocs, recorded.allocs, allocs),
		fmt.Sprintf("within %.0f %%", 100*synthAllocs), math.Abs(allocs-1) <= synthAllocs)
	e.table.Add("synth "+s.name+", torch", fmt.Sprintf("uses %.2f %%, recorded %.2f %%", 100*made.used, 100*recorded.used), "", "beside")
	e.table.Add("synth "+s.name+", time", fmt.Sprintf("%.3f s an iteration, recorded %.3f s: %.2f", made.seconds, recorded.seconds, made.seconds/recorded.seconds), "", "beside")
	return nil
}

// held is what is compared of two traces.
type held struct {
	peak    float64 // bytes live
	allocs  float64 // of an iteration
	seconds float64 // of an iteration, from the second on
	used    float64 // by PyTorch's allocator: peak allocated of peak reserved
}

func countTrace(file string) (held, error) {
	d, err := device(file)
	if err != nil {
		return held{}, err
	}
	h := held{peak: float64(d.PeakLive)}
	if err := h.iterations(file, d.Iterations); err != nil {
		return h, err
	}
	programs, err := replay.Open(file)
	if err != nil {
		return h, err
	}
	specs, err := bench.ParseSpecs("torch")
	if err != nil {
		return h, err
	}
	rows, err := bench.Compare(context.Background(), programs, specs, 0, func() {})
	if err != nil {
		return h, err
	}
	h.used = rows[0].Utilisation
	return h, nil
}

// iterations takes means over the iterations, of which there must be two.
func (h *held) iterations(file string, spans []overview.Span) error {
	if len(spans) < 2 {
		return fmt.Errorf("%s: %d iterations were found", file, len(spans))
	}
	r, err := trace.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	allocs, second, last := 0, int64(0), int64(0)
	err = trace.Each(r, func(row int64, e *trace.Event) error {
		if row < spans[0].First || row >= spans[len(spans)-1].End {
			return nil
		}
		if e.Op == trace.OpAlloc {
			allocs++
		}
		if row == spans[1].First {
			second = e.TimeNS
		}
		last = e.TimeNS
		return nil
	})
	h.allocs = float64(allocs) / float64(len(spans))
	h.seconds = float64(last-second) / 1e9 / float64(len(spans)-1)
	return err
}

// device sums up the only device of a trace.
func device(file string) (*overview.Device, error) {
	r, err := trace.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	o, err := overview.Read(r)
	if err != nil {
		return nil, err
	}
	return o.Devices[0], nil
}

// largeSynth makes a trace of what no machine here can run.
func (e *experiment) largeSynth() error {
	file := filepath.Join(e.dir, "large.parquet")
	var memory int64
	took, err := bestOf(func() (err error) {
		memory, err = gmtraceSynth(file, synthLarge, "--strategy", "R", "--events", strconv.Itoa(synthLargeEvents))
		return err
	})
	if err != nil {
		return err
	}
	c, err := countTrace(file)
	if err != nil {
		return err
	}
	size, rows, err := bytesPerEvent(file)
	if err != nil {
		return err
	}
	e.add(fmt.Sprintf("synth %s, %d events", synthLarge, rows), fmt.Sprintf("%.2f s, %s, %.2f bytes/event", took.Seconds(), units.Bytes(memory), size),
		fmt.Sprintf("%s, %s", synthLargeTime, units.Bytes(synthLargeMemory)), took <= synthLargeTime && memory <= synthLargeMemory)
	e.table.Add("", fmt.Sprintf("peak %s, torch uses %.2f %%", units.Bytes(int64(c.peak)), 100*c.used), "", "beside")
	return nil
}

// gmtraceSynth runs gmtrace synth and returns its largest resident set, in bytes.
func gmtraceSynth(file string, args ...string) (int64, error) {
	cmd := exec.Command("bin/gmtrace", append([]string{"synth", "-o", file}, args...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("gmtrace synth %s: %w", args[0], err)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10, nil
}
