package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

type testGrammar struct {
	Do doCmd `cmd:"" default:"withargs" help:"Do it."`
}

type doCmd struct {
	Fail  string   `help:"How to fail."`
	Mode  string   `short:"m" enum:"fast,slow" default:"fast" help:"How fast: don't hurry."`
	Into  string   `short:"o" placeholder:"FILE" help:"Where it goes."`
	Quiet bool     `help:"Say nothing."`
	Files []string `arg:"" optional:"" name:"file" help:".what to do it to."`
}

func (d *doCmd) Help() string {
	return "Example: test do --mode=slow 'x'\n\nIt is done.\n\nlist     of what there is"
}

func (d *doCmd) Run(*Context) error {
	switch d.Fail {
	case "":
		return nil
	case "usage":
		return fmt.Errorf("do: %w", Usage("not like this"))
	case "pipe":
		return fmt.Errorf("write: %w", syscall.EPIPE)
	}
	return errors.Join(errors.New("first"), errors.New("second"))
}

func TestStatus(t *testing.T) {
	for args, want := range map[string]int{"": 0, "do": 0, "--fail=usage": 2, "--fail=x": 1, "--fail=pipe": 1, "--nonsense": 2, "completion csh": 2, "completion fish": 0, "man": 0, "--version": 0} {
		if got := (Tool{Name: "test", Help: "Do things.", Grammar: &testGrammar{}}).Main(strings.Fields(args)); got != want {
			t.Errorf("%q: status %d, want %d", args, got, want)
		}
	}
}

func TestFailIsOneLine(t *testing.T) {
	var out bytes.Buffer
	c := &Context{Tool: "test", Err: &out}
	c.Fail(errors.Join(errors.New("first"), errors.New("\x1b[31msecond")))
	if want := "test: first; ?[31msecond\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// files lists a folder.
func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	c := &Context{}
	path := filepath.Join(dir, "out")
	if err := c.File(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "whole")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	err := c.File(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		if got := files(t, dir); !strings.Contains(got, ".gm-") {
			t.Errorf("while writing there is %q", got)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if got := files(t, dir); got != "out" {
		t.Errorf("left behind: %q", got)
	}
	if data, err := os.ReadFile(path); string(data) != "whole" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if err := c.File(os.DevNull, func(w io.Writer) error { return nil }); err != nil {
		t.Errorf("to %s: %v", os.DevNull, err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is a file now", os.DevNull)
	}
}

// TestInterruptLeavesNoFile does what an interrupt does before it ends the process.
func TestInterruptLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	c := &Context{}
	err := c.File(filepath.Join(dir, "out"), func(io.Writer) error {
		c.outputs.removeAll()
		if got := files(t, dir); got != "" {
			t.Errorf("left behind: %q", got)
		}
		return errors.New("interrupted")
	})
	if err == nil {
		t.Error("no error")
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	c := &Context{Err: &out}
	p := c.Progress("work", 10)
	p.Add(5)
	p.End()
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
	p.total = 20
	if got, want := p.bar(), "work [##########..............................]  25%"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLineIsWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLine(func() string { return "größer" })
		go l.run(&out, func() int { return 5 })
		time.Sleep(progressDelay + progressTick/2)
		l.End()
		if got, want := out.String(), "\rgröß\033[K\r\033[K"; got != want {
			t.Errorf("printed %q, expected %q", got, want)
		}
	})
}

func TestShortWorkHasNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLine(func() string { return "work" })
		go l.run(&out, func() int { return 80 })
		time.Sleep(progressDelay / 2)
		l.End()
		if out.Len() > 0 {
			t.Errorf("printed %q", out.String())
		}
	})
}
