package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"gm/formats/trace"
	"gm/internal/atomicfile"
	"gm/internal/models/synth"
	"gm/internal/report"
	"gm/internal/units"
)

// The ranks of a job of 65B parameters in four stages, each of which FSDP shares among a quarter of the ranks. A stage is made as a model
// of its layers that computes at once what a pipeline with one forward and one backward pass in turn has in flight: four sequences in the
// first stage, one in the last.
const (
	fleetStages = 4
	fleetSteps  = 3
	fleetStage  = "gpt-65b,layers=20,seq=4Ki,ranks=%d,batch=%d"
)

// The time for the most ranks, and the memory as a multiple of that for the fewest.
const (
	fleetTime   = 30 * time.Second
	fleetMemory = 2.0
)

func fleetRanks() []int { return []int{16, 64, 256, 512} }

// measureFleetRanks reads the traces of all ranks of jobs, and draws time and memory against the number of ranks.
func (e *experiment) measureFleetRanks() error {
	tools := [][]string{{"bin/gmtrace", "show"}, {"bin/gmbench", "--alloc", "torch,expandable"}, {"bin/gmplan", "-o", "/dev/null"}}
	seconds := report.Growth{Title: "CPU time to read all ranks of a job", X: "ranks", Y: "seconds"}
	memory := report.Growth{Title: "memory to read all ranks of a job", X: "ranks", Y: "MiB"}
	for range tools {
		seconds.Curves, memory.Curves = append(seconds.Curves, report.Curve{}), append(memory.Curves, report.Curve{})
	}
	for _, ranks := range fleetRanks() {
		folder := filepath.Join(e.dir, fmt.Sprintf("ranks-%d", ranks))
		rows, err := writeStages(folder, ranks)
		if err != nil {
			return err
		}
		for i, words := range tools {
			u, err := resources(append(words, folder)...)
			if err != nil {
				return err
			}
			for chart, y := range map[*report.Curve]float64{&seconds.Curves[i]: u.cpu.Seconds(), &memory.Curves[i]: float64(u.bytes) / (1 << 20)} {
				chart.Name = filepath.Base(words[0])
				chart.X, chart.Y = append(chart.X, float64(ranks)), append(chart.Y, y)
			}
			first := memory.Curves[i].Y[0] * (1 << 20)
			e.add(fmt.Sprintf("%s, %d ranks, %d rows each", filepath.Base(words[0]), ranks, rows),
				fmt.Sprintf("%.1f s, %.1f s of CPU, %s", u.took.Seconds(), u.cpu.Seconds(), units.Bytes(u.bytes)),
				fmt.Sprintf("%s, %g times that of %d ranks", fleetTime, fleetMemory, fleetRanks()[0]),
				u.took <= fleetTime && float64(u.bytes) <= fleetMemory*first)
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	if err := drawGrowth("fleet-time", seconds); err != nil {
		return err
	}
	return drawGrowth("fleet-memory", memory)
}

// writeStages writes the traces of a job's ranks, and returns the rows of the first.
func writeStages(folder string, ranks int) (rows int64, err error) {
	for rank := range ranks {
		stage := rank * fleetStages / ranks
		job, err := synth.Parse(fmt.Sprintf(fleetStage, ranks/fleetStages, fleetStages-stage), synth.Strategy{Recompute: true})
		if err != nil {
			return 0, err
		}
		host := fmt.Sprintf("node%d", rank/synth.RanksOfHost)
		path := filepath.Join(folder, fmt.Sprintf("host=%s/rank=%d/pid=1/trace.parquet", host, rank))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return 0, err
		}
		written := int64(0)
		if err := writeRank(path, job, trace.Meta{Rank: int64(rank), WorldSize: int64(ranks), Host: host}, &written); err != nil {
			return 0, err
		}
		if rank == 0 {
			rows = written
		}
	}
	return rows, nil
}

func writeRank(path string, job *synth.Job, meta trace.Meta, rows *int64) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	if err := writeSynth(f, job, synth.Run{Seed: 1, Steps: fleetSteps}, meta, rows); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}

// writeSynth writes a synthetic trace with metadata of its own.
func writeSynth(out io.Writer, job *synth.Job, run synth.Run, meta trace.Meta, rows *int64) error {
	w := trace.NewWriter(out, trace.Meta{})
	if err := synth.Write(w, job, run, func(_, n int64) { *rows = n }); err != nil {
		return err
	}
	meta.Source, meta.Alignment = w.Meta().Source, w.Meta().Alignment
	*w.Meta() = meta
	return w.Close()
}

// usage is what a command took.
type usage struct {
	took, cpu time.Duration
	bytes     int64 // its largest resident set
}

// resources runs a command and returns what it took.
func resources(words ...string) (usage, error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return usage{}, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	p := cmd.ProcessState
	return usage{time.Since(start), p.UserTime() + p.SystemTime(), p.SysUsage().(*syscall.Rusage).Maxrss << 10}, nil
}
