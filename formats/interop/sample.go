package main

import (
	"fmt"
	"os"
	"path/filepath"

	"gm/formats/plan"
	"gm/formats/trace"
)

// sampleSteps is how many times the steps of the sample repeat. All counts below are primes, or products of them, so that
// sums are unlikely to be equal by accident.
const sampleSteps = 9973

// writeSamples writes a file of each format: a trace, a plan in which each of its tensors has its own place, a graph, and a schedule for
// the graph.
func writeSamples(dir string) error {
	for _, f := range formats {
		if err := writeFile(filepath.Join(dir, f.name+".parquet"), f.write); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, write func(*os.File) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Close()
}

// sampleSize is the size of a tensor in bytes.
func sampleSize(id int64) int64 { return 1 + id*id%104729 }

func writeTrace(f *os.File) error {
	w := trace.NewWriter(f, trace.Meta{Devices: []string{"sample"}, Capacity: 1 << 37, Source: "sample"})
	b := &trace.Batch{}
	row := int64(0)
	add := func(e trace.Event) {
		e.TimeNS = 1_700_000_000_000_000_000 + 1009*row
		e.Thread = 101
		b.Append(e)
		row++
	}
	for id := int64(1); id <= sampleSteps; id++ {
		add(trace.Event{
			Op: trace.OpAlloc, ID: id, Size: sampleSize(id), Addr: 1<<63 + uint64(id%211)<<9, Device: int32(id % 2),
			Stream: id % 3, Pool: w.Strings().Code([]string{"", "graph"}[id%2]),
			Stack: w.Strings().Code(fmt.Sprintf("main;step_%d;\u03bb", id%53)),
		})
		switch {
		case id%7 == 0 && id > 100:
			add(trace.Event{Op: trace.OpFree, ID: id - 98})
		case id%7 == 1 && id > 100:
			add(trace.Event{Op: trace.OpFreeRequested, ID: id - 98})
			add(trace.Event{Op: trace.OpFreeCompleted, ID: id - 98})
		}
	}
	add(trace.Event{Op: trace.OpMark, Tag: w.Strings().Code("end"), Level: trace.LevelDriver})
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}

func writePlan(f *os.File) error {
	const alignment = 512
	var peak int64
	for id := int64(1); id <= sampleSteps; id++ {
		peak += (sampleSize(id) + alignment - 1) / alignment * alignment
	}
	w := plan.NewWriter(f, plan.Meta{Peak: peak, Alignment: alignment, Rows: 2 * sampleSteps, Solver: "none"})
	b := &plan.Batch{}
	var ends [6]int64 // of the arenas, by the remainder of their ids, which gives device, stream and pool
	for id := int64(1); id <= sampleSteps; id++ {
		b.Append(plan.Tensor{
			ID: id, Size: sampleSize(id), Alloc: id - 1, Free: id + id*id%sampleSteps, AllocNS: 1009 * id, FreeNS: 10007 * id,
			Device: int32(id % 2), Stream: id % 3, Offset: ends[id%6], Arena: w.Strings().Code([]string{"", "graph"}[id%2]),
			Tag: w.Strings().Code([]string{"", "activations", "gradients (guess)"}[id%3]),
		})
		ends[id%6] += (sampleSize(id) + alignment - 1) / alignment * alignment
	}
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}
