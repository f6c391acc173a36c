package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/atomicfile"
	"gm/internal/bench/fleet"
	"gm/internal/models/synth"
)

// The jobs of a dataset, over so many weeks, and the time that each query of docs/fleet.md may take.
const (
	fleetJobs  = 10_000
	fleetWeeks = 10
	fleetQuery = 5 * time.Second
)

// fleetStart is the beginning of the first week: Monday, 2026-09-14.
const fleetStart = 1_789_344_000 * 1_000_000_000

// series is a job that runs each week.
type series struct {
	name     string
	model    string
	strategy synth.Strategy
	batch    int64
	longest  int64 // of the sequences
	card     string
	capacity int64
	grows    int64 // by how many sequences of the batch from week to week
	regress  int64 // by how many in the last week
}

// allSeries returns the jobs of a fleet: most do the same each week, one grows, and one grows in the last week.
func allSeries() []series {
	const a100, h100, l4 = 39.38, 79.11, 21.95
	gib := func(n float64) int64 { return int64(n*1024) << 20 }
	recompute, lora := synth.Strategy{Recompute: true, Vary: true}, synth.Strategy{LoRA: true, Vary: true}
	return []series{
		{"chat-sft", "opt-1.3b,layers=4", recompute, 16, 1024, "NVIDIA A100-SXM4-40GB", gib(a100), 0, 0},
		{"rerank", "gpt2-medium,layers=6", synth.Strategy{Vary: true}, 8, 1024, "NVIDIA A100-SXM4-40GB", gib(a100), 0, 0},
		{"code-lora", "llama-7b,layers=4", lora, 4, 2048, "NVIDIA H100 80GB HBM3", gib(h100), 0, 0},
		{"retriever", "gpt2-medium,layers=2", synth.Strategy{Vary: true}, 8, 512, "NVIDIA L4", gib(l4), 0, 6},
		{"pretrain", "llama-7b,layers=4", synth.Strategy{}, 2, 2048, "NVIDIA A100-SXM4-40GB", gib(a100), 1, 0},
	}
}

// measureFleet measures jobs of many ranks, and a dataset of many jobs.
func measureFleet(e *experiment) error {
	if err := e.measureFleetRanks(); err != nil {
		return err
	}
	folder := filepath.Join(e.dir, "fleet")
	start := time.Now()
	if err := writeFleet(folder, fleetJobs); err != nil {
		return err
	}
	e.table.Add(fmt.Sprintf("fleet, %d jobs summed up", fleetJobs), fmt.Sprintf("%.1f s", time.Since(start).Seconds()), "", "beside")
	u, err := resources("bin/gmtrace", "summary", "-o", folder, "--compact")
	if err != nil {
		return err
	}
	e.table.Add("fleet, compacted", fmt.Sprintf("%.1f s, %d MiB", u.took.Seconds(), u.bytes>>20), "", "beside")
	return e.askFleet(folder)
}

// askFleet has DuckDB answer the queries of docs/fleet.md, if make interop has installed it.
func (e *experiment) askFleet(folder string) error {
	if _, err := os.Stat("formats/interop/node_modules"); err != nil {
		e.table.Add("fleet, queries", "DuckDB is not installed: make interop does that", "", "")
		return nil
	}
	cmd := exec.Command("node", "formats/interop/fleet.mjs", folder, "docs/fleet.md", "--times")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%v: %w", cmd.Args, err)
	}
	var queries, slowest int64
	if _, err := fmt.Sscan(string(out), &queries, &slowest); err != nil {
		return fmt.Errorf("%v printed %q: %w", cmd.Args, out, err)
	}
	e.add(fmt.Sprintf("fleet, the slowest of %d queries", queries), fmt.Sprintf("%d ms", slowest), fleetQuery.String(), slowest <= fleetQuery.Milliseconds())
	return nil
}

// sampleFleet writes the dataset of testdata/fleet to out/fleet.
func sampleFleet(e *experiment) error {
	const jobs = 50
	if err := errors.Join(os.RemoveAll("out/fleet"), writeFleet("out/fleet", jobs)); err != nil {
		return err
	}
	e.table.Add("fleet-sample", fmt.Sprintf("%d jobs in out/fleet", jobs), "", "")
	return nil
}

// writeFleet writes a dataset of jobs, as many at once as there are cores.
func writeFleet(folder string, jobs int) error {
	next, errs := make(chan int), make([]error, jobs)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				errs[i] = writeFleetJob(folder, i)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	all.Wait()
	return errors.Join(errs...)
}

// writeFleetJob makes the trace of a job by its number, sums it up, and adds it to a dataset.
func writeFleetJob(folder string, number int) error {
	s := allSeries()[number%len(allSeries())]
	week := number / len(allSeries()) % fleetWeeks
	batch := s.batch + s.grows*int64(week)
	if week == fleetWeeks-1 {
		batch += s.regress
	}
	lengths := fmt.Sprint(s.longest)
	if s.strategy.Vary {
		lengths = fmt.Sprintf("%d..%d", s.longest/4, s.longest)
	}
	job, err := synth.Parse(fmt.Sprintf("%s,batch=%d,seq=%s", s.model, batch, lengths), s.strategy)
	if err != nil {
		return err
	}
	source, err := column.NewTemporary(s.name, func(out io.Writer) error {
		rows := int64(0)
		meta := trace.Meta{Devices: []string{s.card}, Capacity: s.capacity}
		return writeSynth(out, job, synth.Run{Seed: uint64(number), Steps: 4}, meta, &rows)
	})
	if err != nil {
		return err
	}
	defer source.Close()
	rows, err := fleet.Trace(context.Background(), source)
	if err != nil {
		return fmt.Errorf("sum up job %d: %w", number, err)
	}
	random := rand.New(rand.NewPCG(uint64(number), 0))
	began := fleetStart + int64(week)*int64(7*24*time.Hour) + random.Int64N(int64(7*24*time.Hour))
	for _, r := range rows {
		r.Job, r.Name, r.Host = fmt.Sprintf("%s-%d", s.name, number), s.name, fmt.Sprintf("node%d", random.IntN(100))
		r.StartNS += began
	}
	return fleet.Add(folder, rows, createFile)
}

// createFile writes a file that appears when it is complete.
func createFile(path string, write func(io.Writer) error) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}
