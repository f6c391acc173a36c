package fleet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gm/formats/column"
	"gm/formats/summary"
)

// Compaction is what Compact did.
type Compaction struct {
	Weeks   int   // that were rewritten
	Files   int   // that were merged
	Rows    int64 // in the files that they were merged into
	Doubles int64 // rows that were left out for newer ones of the same job, rank and GPU
}

// Compact merges the files of each week of a dataset into one. The merged file is complete before the others are removed: if it is
// interrupted in between, rows are there twice until the next time. A file that is written anew meanwhile stays. The rows of a job's own
// file are newer than those in the merged file. Files that cannot be read stay as they are, and the error names each; where that is the merged file of a
// week, so do all of that week.
func Compact(folder string, create Create) (c Compaction, err error) {
	unlock, err := lock(folder)
	if err != nil {
		return c, fmt.Errorf("compact %s: %w", folder, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	weeks, err := filepath.Glob(filepath.Join(folder, "week=*"))
	if err != nil {
		return c, fmt.Errorf("compact %s: %w", folder, err)
	}
	var failed []error
	for _, week := range weeks {
		if err := c.week(week, create); err != nil {
			failed = append(failed, fmt.Errorf("compact %s: %w", week, err))
		}
	}
	return c, errors.Join(failed...)
}

func (c *Compaction) week(folder string, create Create) error {
	all, err := filepath.Glob(filepath.Join(folder, "*.parquet"))
	if err != nil {
		return err
	}
	all, damaged := readable(all)
	merged := filepath.Join(folder, compacted)
	if _, err := os.Stat(merged); err == nil && !slices.Contains(all, merged) {
		return damaged
	}
	files := slices.DeleteFunc(slices.Clone(all), func(file string) bool { return !strings.HasPrefix(filepath.Base(file), "job-") })
	if len(files) == 0 {
		return damaged
	}
	of := files
	if slices.Contains(all, merged) { // its rows are the oldest
		of = append(slices.Clip(files), merged)
	}
	return errors.Join(damaged, c.replace(files, of, merged, create))
}

// readable returns the files whose rows can all be read, and an error that names the others.
func readable(files []string) (good []string, damaged error) {
	for _, file := range files {
		if err := each(file, func(*summary.Summary) error { return nil }); err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("left out, and to be moved out of the dataset: %w", err))
		} else {
			good = append(good, file)
		}
	}
	return good, damaged
}

// replace merges the files of jobs with the one that is merged, if that is there, and removes them.
func (c *Compaction) replace(files, of []string, merged string, create Create) error {
	infos := map[string]fs.FileInfo{}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		infos[file] = info
	}
	if err := create(merged, func(out io.Writer) error { return c.merge(out, of) }); err != nil {
		return err
	}
	c.Weeks++
	c.Files += len(of)
	for _, file := range files {
		if now, err := os.Stat(file); err != nil || !os.SameFile(now, infos[file]) {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// merge writes the rows of files to one.
func (c *Compaction) merge(out io.Writer, files []string) error {
	w := newMerger(out)
	seen := map[summary.Key]bool{}
	for _, file := range files {
		err := each(file, func(s *summary.Summary) error {
			if seen[s.Key()] {
				c.Doubles++
				return nil
			}
			seen[s.Key()] = true
			c.Rows++
			return w.add(s)
		})
		if err != nil {
			return err
		}
	}
	return w.close()
}

// mergeRows is how many rows are written at a time.
const mergeRows = 1 << 10

// merger writes rows, some at a time.
type merger struct {
	out  *summary.Writer
	rows []*summary.Summary
}

func newMerger(out io.Writer) *merger { return &merger{out: summary.NewWriter(out)} }

func (m *merger) add(s *summary.Summary) error {
	if m.rows = append(m.rows, s); len(m.rows) < mergeRows {
		return nil
	}
	err := summary.Write(m.out, m.rows)
	m.rows = m.rows[:0]
	return err
}

func (m *merger) close() error {
	if err := summary.Write(m.out, m.rows); err != nil {
		return err
	}
	return m.out.Close()
}

// each reads the rows of a file.
func each(file string, visit func(*summary.Summary) error) (err error) {
	source, err := column.OpenSource(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	r, err := summary.NewReader(source, source.Size(), file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return summary.Each(r, visit)
}
