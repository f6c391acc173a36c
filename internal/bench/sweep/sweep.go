// Package sweep runs a matrix of traces and synthetic jobs by allocators and capacities as tasks that are independent of each other: each has a
// result in a file named for what it was computed from, so that tasks may run anywhere, in any order, more than once, and be killed.
package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gm/internal/bench"
	"gm/internal/jsonvalue"
	"gm/internal/models/synth"
	"gm/internal/units"
)

// Spec is the matrix. A trace may be the folder of a job's ranks. Paths are relative to the folder of its file, or absolute.
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

// parse reads the job.
func (s *Synth) parse() (*synth.Job, error) {
	if s.Steps < 0 {
		return nil, fmt.Errorf("job %s: %d steps", s.Job, s.Steps)
	}
	strategy, err := synth.ParseStrategy(s.Strategy)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", s.Job, err)
	}
	return synth.Parse(s.Job, strategy)
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
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := jsonvalue.Explain(d.Decode(&s)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: text behind the matrix", name)
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
		n, err := units.ParseAmount(text)
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
		t := Task{Trace: name, folder: folder}
		if _, err := os.Stat(t.path()); err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
		programs = append(programs, t)
	}
	for i := range s.Synth {
		if _, err := s.Synth[i].parse(); err != nil {
			return nil, fmt.Errorf("synth: %w", err)
		}
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

// Merge reads the results of all tasks, in their order. It fails with the numbers of those that have none that can be read.
func Merge(tasks []Task, dir string) ([]Result, error) {
	var all []Result
	var missing []int
	for i := range tasks {
		name, err := tasks[i].file(dir)
		if err != nil {
			return nil, err
		}
		r, err := result(name)
		if err != nil {
			return nil, err
		}
		if r == nil {
			missing = append(missing, i)
			continue
		}
		all = append(all, *r)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%d of %d tasks have no result in %s, the first is %d: run them", len(missing), len(tasks), dir, missing[0])
	}
	return all, nil
}

// result reads a result, nil if there is none or it is damaged.
func result(name string) (*Result, error) {
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read a result: %w", err)
	}
	r := &Result{}
	if json.Unmarshal(text, r) != nil || len(r.Rows) == 0 {
		return nil, nil
	}
	return r, nil
}
