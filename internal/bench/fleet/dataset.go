package fleet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gm/formats/column"
	"gm/formats/summary"
)

// compacted is the file of a week into which others are merged.
const compacted = "compacted.parquet"

// File returns the name below a dataset of the file with the summaries of a job that starts at a time: a folder for each week of
// ISO 8601, week=2026-W48, and in it a file for each job. A job that is summed up again has the same file.
func File(job string, startNS int64) string {
	sum := sha256.Sum256([]byte(job))
	return filepath.Join(week(startNS), fmt.Sprintf("job-%x.parquet", sum[:12]))
}

func week(startNS int64) string {
	year, week := time.Unix(0, startNS).UTC().ISOWeek()
	return fmt.Sprintf("week=%04d-W%02d", year, week)
}

// Create makes a file of a path that appears once write has written all of it.
type Create func(path string, write func(io.Writer) error) error

// Add writes the summaries of one job to a dataset.
func Add(folder string, rows []*summary.Summary, create Create) error {
	start := rows[0].StartNS
	for _, s := range rows {
		start = min(start, s.StartNS)
	}
	path := filepath.Join(folder, File(rows[0].Job, start))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("add to dataset %s: %w", folder, err)
	}
	return create(path, func(out io.Writer) error {
		w := summary.NewWriter(out)
		if err := summary.Write(w, rows); err != nil {
			return err
		}
		return w.Close()
	})
}

// Compaction is what Compact did.
type Compaction struct {
	Weeks   int   // that were rewritten
	Files   int   // that were merged
	Rows    int64 // in the files that they were merged into
	Doubles int64 // rows that were left out for newer ones of the same job, rank and GPU
}

// Compact merges the files of each week of a dataset into one. The merged file is complete before the others are removed: if it is
// interrupted in between, rows are there twice until the next time. A file that is written anew meanwhile stays. The rows of a job's own
// file are newer than those in the merged file.
func Compact(folder string, create Create) (Compaction, error) {
	var c Compaction
	weeks, err := filepath.Glob(filepath.Join(folder, "week=*"))
	if err != nil {
		return c, fmt.Errorf("compact %s: %w", folder, err)
	}
	for _, week := range weeks {
		if err := c.week(week, create); err != nil {
			return c, fmt.Errorf("compact %s: %w", week, err)
		}
	}
	return c, nil
}

func (c *Compaction) week(folder string, create Create) error {
	files, err := filepath.Glob(filepath.Join(folder, "job-*.parquet"))
	if err != nil || len(files) == 0 {
		return err
	}
	merged := filepath.Join(folder, compacted)
	all := files
	if _, err := os.Stat(merged); err == nil {
		all = append(slices.Clip(files), merged)
	}
	infos := map[string]fs.FileInfo{}
	for _, file := range files {
		if infos[file], err = os.Stat(file); err != nil {
			return err
		}
	}
	if err := create(merged, func(out io.Writer) error { return c.merge(out, all) }); err != nil {
		return err
	}
	c.Weeks++
	c.Files += len(all)
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

// mergeRows is how many rows are merged at a time.
const mergeRows = 1 << 10

// merge writes the rows of files to one.
func (c *Compaction) merge(out io.Writer, files []string) error {
	w := summary.NewWriter(out)
	seen := map[summary.Key]bool{}
	var rows []*summary.Summary
	for _, file := range files {
		err := each(file, func(s *summary.Summary) error {
			if seen[s.Key()] {
				c.Doubles++
				return nil
			}
			seen[s.Key()] = true
			c.Rows++
			if rows = append(rows, s); len(rows) < mergeRows {
				return nil
			}
			err := summary.Write(w, rows)
			rows = rows[:0]
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := summary.Write(w, rows); err != nil {
		return err
	}
	return w.Close()
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
