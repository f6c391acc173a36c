package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gm/formats/trace"
	"gm/internal/units"
)

// measureLook has gmtrace show, compare and export the longest trace.
func measureLook(e *experiment) error {
	longest, err := e.longest()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "gm-look-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	out := func(name string) string { return filepath.Join(folder, name) }
	for _, words := range [][]string{
		{"show"}, {"show", "--top"}, {"show", "--pprof", out("live.pb.gz")}, {"show", "--png", out("live.png")}, {"diff", longest}, // with itself
		{"export", "-o", out("x.pickle")}, {"export", "-o", out("x.csv")}, {"export", "--format", "rmm", "-o", out("x.rmm")},
		{"export", "--format", "stalloc", "-o", out("x.stalloc")}, {"export", "-o", out("x.json")}, {"export", "-o", out("x.parquet")},
	} {
		if err := e.look(words, longest, folder); err != nil {
			return err
		}
	}
	return nil
}

// longest returns the trace of most rows.
func (e *experiment) longest() (string, error) {
	type counted struct {
		file string
		rows int64
	}
	var all []counted
	for _, s := range e.traces {
		r, err := trace.Open(s.trace)
		if err != nil {
			return "", err
		}
		all = append(all, counted{s.trace, r.Rows()})
		if err := r.Close(); err != nil {
			return "", err
		}
	}
	if len(all) == 0 {
		return "", errors.New("there are no traces")
	}
	return slices.MaxFunc(all, func(a, b counted) int { return cmp.Compare(a.rows, b.rows) }).file, nil
}

// look adds the time and memory of a command on a trace, and the size of what it wrote.
func (e *experiment) look(words []string, file, folder string) error {
	var memory int64
	took, err := bestOf(func() error {
		cmd := exec.Command("bin/gmtrace", append(slices.Clone(words), file)...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%v: %w", cmd.Args, err)
		}
		memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		return nil
	})
	if err != nil {
		return err
	}
	measured := fmt.Sprintf("%.1f s, %s", took.Seconds(), units.Bytes(memory))
	written := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, folder) })
	if written >= 0 {
		info, err := os.Stat(words[written])
		if err != nil {
			return err
		}
		measured += fmt.Sprintf(", %.1f MB written", float64(info.Size())/1e6)
		words[written] = filepath.Base(words[written])
	}
	e.add("gmtrace "+strings.ReplaceAll(strings.Join(words, " "), filepath.Dir(file)+"/", ""), measured, "", true)
	return nil
}
