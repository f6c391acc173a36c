// Package sweep runs a matrix of traces and synthetic jobs by allocators and capacities as tasks that are independent of each other: each has a
// result in a file named for what it was computed from, so that tasks may run anywhere, in any order, more than once, and be killed.
package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gm/formats/trace"
	"gm/internal/atomicfile"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/models/synth"
	"gm/internal/units"
	"gm/internal/version"
)

// Spec is the matrix. Paths of traces are relative to the folder of its file.
type Spec struct {
	Traces     []string `json:"traces"`
	Synth      []Synth  `json:"synth"`
	Allocators []string `json:"allocators"`
	Capacities []string `json:"capacities"` // such as 80GiB; without any, there is no limit
}

// Synth is a synthetic job, as gmtrace synth takes it.
type Synth struct {
	Job      string `json:"job"`
	Strategy string `json:"strategy"`
	Steps    int64  `json:"steps"`
}

// Task is a cell of the matrix.
type Task struct {
	Trace     string `json:"trace,omitempty"`
	Synth     *Synth `json:"synth,omitempty"`
	Allocator string `json:"allocator"`
	Capacity  int64  `json:"capacity_bytes"` // 0 for no limit
	folder    string
}

// Result is what a task found.
type Result struct {
	Task Task        `json:"task"`
	Rows []bench.Row `json:"rows"`
}

// most is how many tasks a matrix may have.
const most = 1 << 20

// Read reads a matrix and lists its tasks in order.
func Read(name string) ([]Task, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read a sweep: %w", err)
	}
	var s Spec
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	tasks, err := s.tasks(filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return tasks, nil
}

func (s *Spec) tasks(folder string) ([]Task, error) {
	var capacities []int64
	for _, text := range s.Capacities {
		n, err := units.ParseBytes(text)
		if err != nil {
			return nil, fmt.Errorf("capacities: %w", err)
		}
		capacities = append(capacities, int64(n))
	}
	if capacities == nil {
		capacities = []int64{0}
	}
	var programs []Task
	for _, name := range s.Traces {
		programs = append(programs, Task{Trace: name, folder: folder})
	}
	for i := range s.Synth {
		programs = append(programs, Task{Synth: &s.Synth[i]})
	}
	if n := len(programs) * len(s.Allocators) * len(capacities); n == 0 || n > most {
		return nil, fmt.Errorf("%d traces and jobs by %d allocators: a sweep has 1 to %d tasks", len(programs), len(s.Allocators), most)
	}
	var all []Task
	for _, t := range programs {
		for _, name := range s.Allocators {
			if specs, err := bench.ParseSpecs(name); err != nil || len(specs) != 1 {
				return nil, fmt.Errorf("allocators: %q is not one: %w", name, err)
			}
			for _, n := range capacities {
				t.Allocator, t.Capacity = name, n
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// file returns the name of the file of a task's result: a digest of the task, of what is in its trace, and of gm's version.
func (t *Task) file(dir string) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(t); err != nil {
		return "", err
	}
	fmt.Fprintln(sum, version.Number)
	if t.Trace != "" {
		f, err := os.Open(filepath.Join(t.folder, t.Trace))
		if err != nil {
			return "", fmt.Errorf("open a trace: %w", err)
		}
		defer f.Close()
		if _, err := io.Copy(sum, f); err != nil {
			return "", fmt.Errorf("read a trace: %w", err)
		}
	}
	return filepath.Join(dir, hex.EncodeToString(sum.Sum(nil))+".json"), nil
}

// Run runs a task unless there is its result in a folder. It reports whether it ran.
func (t *Task) Run(ctx context.Context, dir string) (bool, error) {
	name, err := t.file(dir)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	programs, err := t.programs()
	if err != nil {
		return false, err
	}
	specs, err := bench.ParseSpecs(t.Allocator)
	if err != nil {
		return false, err
	}
	rows, err := bench.Compare(ctx, programs, specs, t.Capacity, func() {})
	if err != nil {
		return false, err
	}
	return true, atomicfile.Write(name, func(w io.Writer) error { return json.NewEncoder(w).Encode(Result{*t, rows}) })
}

func (t *Task) programs() ([]*replay.Program, error) {
	if t.Synth == nil {
		return replay.Open(filepath.Join(t.folder, t.Trace))
	}
	strategy, err := synth.ParseStrategy(t.Synth.Strategy)
	if err != nil {
		return nil, err
	}
	job, err := synth.Parse(t.Synth.Job, strategy)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "gm-sweep-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	w := trace.NewWriter(f, trace.Meta{})
	if err := errors.Join(synth.Write(w, job, synth.Run{Seed: 1, Steps: max(1, t.Synth.Steps)}, func(int64, int64) {}), w.Close(), f.Close()); err != nil {
		return nil, err
	}
	programs, err := replay.Open(f.Name())
	for _, p := range programs {
		p.Name = t.Synth.Job + " " + strategy.String()
	}
	return programs, err
}

// Merge reads the results of all tasks, in their order. It fails with the numbers of those that have none.
func Merge(tasks []Task, dir string) ([]Result, error) {
	var all []Result
	var missing []int
	for i := range tasks {
		name, err := tasks[i].file(dir)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, i)
			continue
		}
		var r Result
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%d of %d tasks have no result in %s, the first is %d: run them", len(missing), len(tasks), dir, missing[0])
	}
	return all, nil
}
