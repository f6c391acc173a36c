package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gm/formats/column"
	"gm/formats/summary"
	"gm/internal/bench"
	"gm/internal/bench/fleet"
	"gm/internal/bench/replay"
	"gm/internal/torch/allocconf"
)

// create writes a file in place.
func create(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// rows reads a whole dataset, as the peaks by job and rank, and counts the rows and the files.
func rows(t *testing.T, folder string) (peaks map[string]int64, rows, files int) {
	t.Helper()
	peaks = map[string]int64{}
	all, err := filepath.Glob(filepath.Join(folder, "week=*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		source, err := column.OpenSource(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := summary.NewReader(source, source.Size(), file)
		if err != nil {
			t.Fatal(err)
		}
		if err := summary.Each(r, func(s *summary.Summary) error {
			peaks[fmt.Sprintf("%s/%d", s.Job, s.Rank)] = s.Peak
			rows++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := source.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return peaks, rows, len(all)
}

func add(t *testing.T, folder, job string, startNS, peak int64) {
	t.Helper()
	if err := fleet.Add(folder, ofRanks(job, startNS, peak), create); err != nil {
		t.Fatal(err)
	}
}

// ofRanks returns the rows of a job of two ranks.
func ofRanks(job string, startNS, peak int64) (all []*summary.Summary) {
	for rank := range int64(2) {
		all = append(all, &summary.Summary{Job: job, Rank: rank, StartNS: startNS + rank, Peak: peak + rank})
	}
	return all
}

// week is a week in nanoseconds.
const week = 7 * 24 * 3600 * 1e9

func TestDataset(t *testing.T) {
	folder := t.TempDir()
	add(t, folder, "a", 0, 10)
	add(t, folder, "b", 0, 20)
	add(t, folder, "c", 5*week, 30)
	add(t, folder, "a", 0, 40) // again
	want := map[string]int64{"a/0": 40, "a/1": 41, "b/0": 20, "b/1": 21, "c/0": 30, "c/1": 31}
	check := func(what string, wantFiles int) {
		t.Helper()
		got, n, files := rows(t, folder)
		if !reflect.DeepEqual(got, want) || n != len(want) || files != wantFiles {
			t.Errorf("%s: %v in %d rows and %d files, want %v in %d files", what, got, n, files, want, wantFiles)
		}
	}
	check("added", 3)
	compact := func(want fleet.Compaction) {
		t.Helper()
		if got, err := fleet.Compact(folder, create); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	compact(fleet.Compaction{Weeks: 2, Files: 3, Rows: 6})
	check("compacted", 2)
	compact(fleet.Compaction{})
	check("compacted twice", 2)

	add(t, folder, "b", 0, 50) // in place of what is merged
	want["b/0"], want["b/1"] = 50, 51
	check("added again", 3)
	compact(fleet.Compaction{Weeks: 1, Files: 2, Rows: 4})
	check("compacted again", 2)

	add(t, folder, "c", 6*week, 60) // another week: the old one is empty
	want["c/0"], want["c/1"] = 60, 61
	check("added in another week", 2)
	add(t, folder, "c", 7*week, 60)
	check("added in another week, not compacted", 2)
}

// TestIdentity has jobs of the same name.
func TestIdentity(t *testing.T) {
	job := func(change func(s *summary.Summary)) string {
		s := &summary.Summary{StartNS: 1e9 + 5, Host: "a", PID: 7, Command: "train.py"}
		change(s)
		return fleet.Identity("traces", []*summary.Summary{{StartNS: 2e9}, s})
	}
	same := job(func(*summary.Summary) {})
	if !regexp.MustCompile(`^traces@19700101T000001Z-[0-9a-f]{6}$`).MatchString(same) {
		t.Errorf("the identity is %q", same)
	}
	for what, change := range map[string]func(s *summary.Summary){
		"time": func(s *summary.Summary) { s.StartNS++ }, "host": func(s *summary.Summary) { s.Host = "b" }, "pid": func(s *summary.Summary) { s.PID++ },
		"command": func(s *summary.Summary) { s.Command = "eval.py" }, "source": func(s *summary.Summary) { s.Source = "x" },
	} {
		if job(change) == same {
			t.Errorf("jobs that differ in %s alone are both %s", what, same)
		}
	}
	if job(func(s *summary.Summary) { s.Peak = 5 }) != same {
		t.Error("a job that is summed up again has another identity")
	}
}

// TestDamaged has files that cannot be read: they are named and left as they are, and the rest is merged.
func TestDamaged(t *testing.T) {
	folder := t.TempDir()
	for i, job := range []string{"a", "b", "c"} {
		add(t, folder, job, 0, int64(10*i))
	}
	add(t, folder, "d", week, 40)
	damage := func(file string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, file), []byte("PAR1 no"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	bad, foreign := fleet.File("b", 0), filepath.Join(filepath.Dir(fleet.File("d", week)), "x.parquet")
	damage(bad)
	damage(foreign)
	c, err := fleet.Compact(folder, create)
	if want := (fleet.Compaction{Weeks: 2, Files: 3, Rows: 6}); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	for _, name := range []string{bad, foreign} {
		if err == nil || !strings.Contains(err.Error(), filepath.Join(folder, name)) {
			t.Errorf("%v does not name %s", err, name)
		}
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	if peaks, n, files := rows(t, folder); n != 6 || files != 2 || peaks["d/1"] != 41 {
		t.Errorf("%v in %d rows and %d files", peaks, n, files)
	}
	merged := filepath.Join(filepath.Dir(bad), "compacted.parquet")
	damage(merged)
	for range 2 { // with and without files to merge in the week
		if c, err := fleet.Compact(folder, create); err == nil || !strings.Contains(err.Error(), merged) {
			t.Errorf("%+v, %v, want an error that names %s", c, err, merged)
		}
		if err := fleet.Add(folder, ofRanks("f", 0, 60), create); err == nil || !strings.Contains(err.Error(), merged) {
			t.Errorf("%v, want an error that names %s", err, merged)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, fleet.File("f", 0))); err != nil {
		t.Error(err)
	}
}

// TestCompactionLosesNothing interrupts a compaction, and replaces a file while it runs.
func TestCompactionLosesNothing(t *testing.T) {
	folder := t.TempDir()
	add(t, folder, "a", 0, 10)
	add(t, folder, "b", 0, 20)
	failing := func(string, func(io.Writer) error) error { return io.ErrShortWrite }
	if _, err := fleet.Compact(folder, failing); err == nil {
		t.Error("no error")
	}
	if _, n, _ := rows(t, folder); n != 4 {
		t.Errorf("%d rows are left, want 4", n)
	}
	meanwhile := func(path string, write func(io.Writer) error) error {
		err := create(path, write)
		other := t.TempDir()
		add(t, other, "b", 0, 30)
		return errors.Join(err, os.Rename(filepath.Join(other, fleet.File("b", 0)), filepath.Join(folder, fleet.File("b", 0))))
	}
	if _, err := fleet.Compact(folder, meanwhile); err != nil {
		t.Fatal(err)
	}
	if _, n, _ := rows(t, folder); n != 6 {
		t.Errorf("%d rows, want the 4 that were merged and 2 new ones", n)
	}
	if _, err := fleet.Compact(folder, create); err != nil {
		t.Fatal(err)
	}
	if got, n, _ := rows(t, folder); n != 4 || got["b/1"] != 31 {
		t.Errorf("%v in %d rows", got, n)
	}
}

func TestWeeks(t *testing.T) {
	for startNS, want := range map[int64]string{
		0: "week=1970-W01", 4 * week: "week=1970-W05", 1767225600e9: "week=2026-W01", 1767571200e9: "week=2026-W02",
	} {
		if got := filepath.Dir(fleet.File("j", startNS)); got != want {
			t.Errorf("%d: %s, want %s", startNS, got, want)
		}
	}
}

// TestTrace compares a summary with what gmbench measures, and its parts with their sum.
func TestTrace(t *testing.T) {
	for _, name := range []string{"opt13b-LRV.parquet", "captures/opt1.3b.parquet"} {
		file := filepath.Join("../../../testdata", name)
		source, err := column.OpenSource(file)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		all, err := fleet.Trace(context.Background(), source)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %d rows: %v", name, len(all), err)
		}
		s := all[0]
		programs, err := replay.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		specs, err := bench.ParseSpecs("torch,expandable,stitch")
		if err != nil {
			t.Fatal(err)
		}
		want, err := bench.Compare(context.Background(), programs, specs, 0, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if s.Torch != want[0].PeakReserved || s.Expandable != want[1].PeakReserved || s.Stitch != want[2].PeakReserved {
			t.Errorf("%s: %d, %d, %d, want %+v", name, s.Torch, s.Expandable, s.Stitch, want)
		}
		tagged := int64(0)
		for _, bytes := range s.Tags {
			tagged += bytes
		}
		rounded := programs[0].PeakLive() // to the allocator's alignment
		if tagged != s.Peak || s.Peak > rounded || s.Peak < rounded-rounded/10000 {
			t.Errorf("%s: tags of %d bytes, peak %d, rounded %d", name, tagged, s.Peak, rounded)
		}
		lost := int64(0)
		for _, bytes := range s.Lost {
			lost += bytes
		}
		of := s.Torch
		if conf, _ := allocconf.Recorded(s.Settings); conf.Expandable {
			of = s.Expandable
		}
		if lost <= 0 || lost < of-s.Peak {
			t.Errorf("%s: %d bytes lost of %d, peak %d", name, lost, of, s.Peak)
		}
	}
}
