package sweep

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/atomicfile"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/models/synth"
	"gm/internal/trace/ranks"
	"gm/internal/version"
)

// Task is a cell of the matrix.
type Task struct {
	Trace     string `json:"trace,omitempty"`
	Synth     *Synth `json:"synth,omitempty"`
	Allocator string `json:"allocator"`
	Capacity  int64  `json:"capacity_bytes"` // 0 for no limit
	folder    string
}

// path returns the name of the task's trace.
func (t *Task) path() string {
	if filepath.IsAbs(t.Trace) {
		return t.Trace
	}
	return filepath.Join(t.folder, t.Trace)
}

// file returns the name of the file of a task's result: a digest of the task, of what is in its trace, and of gm's version.
func (t *Task) file(dir string) (string, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(t); err != nil {
		return "", err
	}
	fmt.Fprintln(sum, version.Number)
	if t.Trace != "" {
		if err := t.contents(sum); err != nil {
			return "", fmt.Errorf("read a trace: %w", err)
		}
	}
	return filepath.Join(dir, hex.EncodeToString(sum.Sum(nil))+".json"), nil
}

// contents writes what is in the task's trace, or in those of a job's ranks.
func (t *Task) contents(sum hash.Hash) error {
	if !ranks.IsFolder(t.path()) {
		return copyFile(sum, t.path())
	}
	j, err := ranks.Open(t.path())
	if err != nil {
		return err
	}
	for _, m := range j.Members {
		fmt.Fprintln(sum, m.File, m.Rank)
		if err := copyFile(sum, m.Path()); err != nil {
			return err
		}
	}
	return j.Lacks()
}

func copyFile(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Run runs a task unless there is its result in a folder. It reports whether it ran.
func (t *Task) Run(ctx context.Context, dir string) (bool, error) {
	name, err := t.file(dir)
	if err != nil {
		return false, err
	}
	if r, err := result(name); r != nil || err != nil {
		return false, err
	}
	rows, err := t.rows(ctx)
	if err != nil {
		return false, err
	}
	return true, atomicfile.Write(name, func(w io.Writer) error { return json.NewEncoder(w).Encode(Result{*t, rows}) })
}

// rows replays the task's trace, those of a job's ranks one after the other, or its synthetic job.
func (t *Task) rows(ctx context.Context) ([]bench.Row, error) {
	specs, err := bench.ParseSpecs(t.Allocator)
	if err != nil {
		return nil, err
	}
	compare := func(programs []*replay.Program, name string) ([]bench.Row, error) {
		for _, p := range programs {
			p.Name = name
		}
		return bench.Compare(ctx, programs, specs, t.Capacity, func() {})
	}
	switch {
	case t.Synth != nil:
		programs, err := t.Synth.programs()
		if err != nil {
			return nil, err
		}
		return compare(programs, t.Synth.Job+" "+cmp.Or(t.Synth.Strategy, "N"))
	case ranks.IsFolder(t.path()):
		return t.ranks(ctx, compare)
	}
	programs, err := replay.Open(t.path())
	if err != nil {
		return nil, err
	}
	return compare(programs, t.Trace)
}

// ranks replays the traces of a job's ranks, which have to be whole.
func (t *Task) ranks(ctx context.Context, compare func([]*replay.Program, string) ([]bench.Row, error)) ([]bench.Row, error) {
	j, err := ranks.Open(t.path())
	if err != nil {
		return nil, err
	}
	rows := make([][]bench.Row, len(j.Members))
	err = j.Each(ctx, 1, func() {}, func(m *ranks.Member, source *column.Source) error {
		programs, err := trace.ReadSource(source, replay.Load)
		if err == nil {
			rows[m.Index], err = compare(programs, filepath.Join(t.Trace, m.File))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.Concat(rows...), j.Lacks()
}

// programs makes the trace of a synthetic job.
func (s *Synth) programs() ([]*replay.Program, error) {
	job, err := s.parse()
	if err != nil {
		return nil, err
	}
	source, err := column.NewTemporary(s.Job, func(out io.Writer) error {
		w := trace.NewWriter(out, trace.Meta{})
		return errors.Join(synth.Write(w, job, synth.Run{Seed: 1, Steps: max(1, s.Steps)}, func(int64, int64) {}), w.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("make the trace of %s: %w", s.Job, err)
	}
	programs, err := trace.ReadSource(source, replay.Load)
	return programs, errors.Join(err, source.Close())
}
