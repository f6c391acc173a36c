package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gm/formats/trace"
	"gm/internal/models/synth"
	"gm/internal/report"
	"gm/internal/units"
)

// The ranks of a job of 65B parameters in four stages of a pipeline, each of which FSDP shares among a quarter of the ranks.
const (
	fleetStages = 4
	fleetSteps  = 3
	fleetJob    = "llama-65b,batch=1,seq=4Ki,ranks=%d,pp=%d"
)

// The time for the most ranks, and the memory as a multiple of that for the fewest.
const (
	fleetTime   = 30 * time.Second
	fleetMemory = 2.0
)

func fleetRanks() []int { return []int{16, 64, 256, 512} }

// rankCommand is a command that reads all ranks of a job.
type rankCommand struct {
	name  string
	words []string // before the folder
	twice bool     // it takes the folder twice
}

func (e *experiment) rankCommands() []rankCommand {
	return []rankCommand{
		{"gmtrace show", []string{"bin/gmtrace", "show"}, false},
		{"gmbench", []string{"bin/gmbench", "--alloc", "torch,expandable"}, false},
		{"gmplan", []string{"bin/gmplan", "-o", "/dev/null"}, false},
		{"gmtrace page", []string{"bin/gmtrace", "page", "-o", "/dev/null"}, false},
		{"gmtrace diff", []string{"bin/gmtrace", "diff"}, true},
		{"gmbench check", []string{"bin/gmbench", "check"}, true},
		{"gmtrace summary", []string{"bin/gmtrace", "summary", "-o", filepath.Join(e.dir, "ranks-fleet")}, false},
	}
}

// measureFleetRanks reads the traces of all ranks of jobs, and draws time and memory against the number of ranks.
func (e *experiment) measureFleetRanks() error {
	commands := e.rankCommands()
	seconds := report.Growth{Title: "CPU time to read all ranks of a job", X: "ranks", Y: "seconds", Curves: make([]report.Curve, len(commands))}
	memory := report.Growth{Title: "memory to read all ranks of a job", X: "ranks", Y: "MiB", Linear: true, Curves: make([]report.Curve, len(commands))}
	for _, ranks := range fleetRanks() {
		folder := filepath.Join(e.dir, fmt.Sprintf("ranks-%d", ranks))
		rows, err := writeRanks(folder, ranks)
		if err != nil {
			return err
		}
		for i, c := range commands {
			u, err := c.on(folder)
			if err != nil {
				return err
			}
			seconds.Curves[i].Name, memory.Curves[i].Name = c.name, c.name
			addPoint(&seconds.Curves[i], float64(ranks), u.cpu.Seconds())
			addPoint(&memory.Curves[i], float64(ranks), float64(u.bytes)/(1<<20))
			first := memory.Curves[i].Y[0] * (1 << 20)
			e.add(fmt.Sprintf("%s, %d ranks, %d rows each", c.name, ranks, rows),
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

func (c *rankCommand) on(folder string) (usage, error) {
	words := append(slices.Clone(c.words), folder)
	if c.twice {
		words = append(words, folder)
	}
	return resources(words...)
}

func addPoint(c *report.Curve, x, y float64) { c.X, c.Y = append(c.X, x), append(c.Y, y) }

// writeRanks writes the traces of a job's ranks, and returns the rows of the first. Another process makes them: what is measured later would
// count the memory of this one as its own.
func writeRanks(folder string, ranks int) (rows int64, err error) {
	job := fmt.Sprintf(fleetJob, ranks/fleetStages, fleetStages)
	if _, err := resources("bin/gmtrace", "synth", job, "--strategy", "R", "--steps", fmt.Sprint(fleetSteps), "-o", folder+"/"); err != nil {
		return 0, err
	}
	first, err := trace.Open(filepath.Join(folder, "host=node0/rank=0/pid=1/trace.parquet"))
	if err != nil {
		return 0, err
	}
	return first.Rows(), first.Close()
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
