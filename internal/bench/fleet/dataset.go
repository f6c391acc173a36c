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

	"golang.org/x/sys/unix"

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

// Add writes the summaries of one job to a dataset. Those that it has of the job are removed when the new ones are there: if it is interrupted
// in between, both are there until the job is added again.
func Add(folder string, rows []*summary.Summary, create Create) error {
	start := rows[0].StartNS
	for _, s := range rows {
		start = min(start, s.StartNS)
	}
	job := rows[0].Job
	path := filepath.Join(folder, File(job, start))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("add to dataset %s: %w", folder, err)
	}
	unlock, err := lock(folder)
	if err != nil {
		return fmt.Errorf("add job %s to dataset %s: %w", job, folder, err)
	}
	defer unlock()
	if err := create(path, func(out io.Writer) error { return write(out, rows) }); err != nil {
		return err
	}
	if err := remove(folder, job, path, create); err != nil {
		return fmt.Errorf("job %s was added to dataset %s, where rows that it had before may be left: %w", job, folder, err)
	}
	return nil
}

func write(out io.Writer, rows []*summary.Summary) error {
	w := summary.NewWriter(out)
	if err := summary.Write(w, rows); err != nil {
		return err
	}
	return w.Close()
}

// lock keeps other processes from replacing files of a dataset. On file systems without locks it keeps nobody.
func lock(folder string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil && !slices.Contains([]error{unix.ENOSYS, unix.ENOLCK, unix.EOPNOTSUPP}, err) {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f.Close, nil
}

// remove removes the rows of a job from a dataset, except those in a file.
func remove(folder, job, except string, create Create) error {
	weeks, err := filepath.Glob(filepath.Join(folder, "week=*"))
	if err != nil {
		return err
	}
	var failed []error
	for _, week := range weeks {
		own := filepath.Join(week, filepath.Base(except))
		if own != except {
			if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
		failed = append(failed, removeMerged(filepath.Join(week, compacted), job, create))
	}
	return errors.Join(failed...)
}

// removeMerged removes the rows of a job from a merged file, and the file if there are no others in it.
func removeMerged(file, job string, create Create) error {
	rows, others := 0, 0
	err := each(file, func(s *summary.Summary) error {
		if s.Job == job {
			rows++
		} else {
			others++
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || rows == 0:
		return err
	case others == 0:
		return os.Remove(file)
	}
	return create(file, func(out io.Writer) error {
		w := newMerger(out)
		if err := each(file, func(s *summary.Summary) error {
			if s.Job == job {
				return nil
			}
			return w.add(s)
		}); err != nil {
			return err
		}
		return w.close()
	})
}
