package capture

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// compileHere compiles a test program, or a library, into a folder of this test.
func compileHere(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O1", "-I" + b.libraries.Include, "-L" + b.folder, "-pthread", "-o", out, "testdata/" + source}, flags...)
	if err := compile(args...); err != nil {
		t.Fatal(err)
	}
	return out
}

// What a program has of its own, and how it handles the driver, is not disturbed.
func TestHarmless(t *testing.T) {
	stub := compileHere(t, "stub", "stub.c", "-rdynamic", "-ldl")
	tool := compileHere(t, "tool.so", "tool.c", "-shared", "-fPIC", "-ldl")
	for _, test := range []struct {
		name   string
		env    []string
		words  []string
		audit  bool
		allocs int // of device memory; -1 for any number
	}{
		{name: "a stub in the program", words: []string{stub, "allocate"}, allocs: 1},
		{name: "a stub in the program, audited", words: []string{stub, "allocate"}, audit: true, allocs: 1},
		{name: "another wrapper", env: []string{"LD_PRELOAD=" + tool}, words: []string{stub, "tool"}, allocs: -1},
		{name: "the driver loaded twice", words: []string{stub, "reload"}, allocs: 2},
		{name: "the driver loaded twice, audited", words: []string{stub, "reload"}, audit: true, allocs: 2},
		{name: "a fork while the ring is opened", words: []string{stub, "split"}, allocs: 0},
		{name: "a library without a file", words: []string{stub, "unlinked", compileHere(t, "plugin.so", "plugin.c", "-shared", "-fPIC", "-lcudart")}, allocs: 1},
		{name: "more pools than are kept", words: []string{"driver", "manypools"}, allocs: 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := run(t, Options{Audit: test.audit}, test.env, slices.Clone(test.words)...)
			if c.status != 0 {
				t.Fatalf("exit status %d", c.status)
			}
			got := 0
			if s := c.sums(t)[trace.KindMemory]; s != nil {
				got = int(s.Allocs)
			}
			if test.allocs >= 0 && got != test.allocs {
				t.Errorf("%d allocs recorded, want %d", got, test.allocs)
			}
		})
	}
}

// A program may unload the driver, and load others that have functions of the same names.
func TestUnloadedDriver(t *testing.T) {
	driver := compileHere(t, "libcuda.so.1", "unload.c", "-shared", "-fPIC", "-DWHOSE=1", "-Wl,-soname,libcuda.so.1")
	other := compileHere(t, "libother.so", "unload.c", "-shared", "-fPIC", "-DWHOSE=2")
	program := compileHere(t, "unload", "unload.c", "-ldl")
	t.Setenv("DRIVER_FOLDER", filepath.Dir(driver))
	for _, audit := range []bool{false, true} {
		without, with := printed(t, Options{Audit: audit}, "sh", "-c", "LD_LIBRARY_PATH=$DRIVER_FOLDER exec "+program+" "+other)
		if with != without || strings.Count(with, "other 2\n") != 3 {
			t.Errorf("audit %v: recorded\n%swithout\n%s", audit, with, without)
		}
	}
}

// The ring of a process that is dead is given back, with what it counted kept.
func TestDeadRelease(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(Options{Library: b.preload, Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run([]string{filepath.Join(b.folder, "driver"), "many"}, os.Stderr); err != nil {
		t.Fatal(err)
	}
	p := s.processes[0]
	left, err := os.ReadDir(s.rings)
	if !p.life.dead() || p.life.fd >= 0 || p.ring != nil || len(p.header.Command) != 2 || err != nil || len(left) != 2 {
		t.Errorf("dead %v, descriptor %d, command %q, left %q, %v", p.life.dead(), p.life.fd, p.header.Command, left, err)
	}
}

// Rings are emptied while a long dump of PyTorch's is read.
func TestDrainDuringDump(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.1.0.pickle")
	if err := os.WriteFile(file, []byte("no pickle"), 0o600); err != nil {
		t.Fatal(err)
	}
	drained := 0
	p := newProcess(1, t.TempDir(), &cards{}, t.Logf)
	p.drain = func() { drained++ }
	if !p.takeDump(file) || p.failed == nil || drained == 0 {
		t.Errorf("error %v, rings emptied %d times", p.failed, drained)
	}
}

// Without descriptors of processes, one that lives is not taken for dead, nor is one that nobody has waited for, or a later one, for alive.
func TestDeadWithoutDescriptor(t *testing.T) {
	asked := func(pid int) *life { return &life{pid: pid, fd: -1} }
	if asked(os.Getpid()).dead() {
		t.Error("this process is dead")
	}
	later := asked(os.Getpid())
	later.since = []byte("1")
	if !later.dead() {
		t.Error("a later process is taken for an earlier one")
	}
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = c.Process.Kill()
	for begin := time.Now(); !asked(c.Process.Pid).dead(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("a process that was killed lives")
		}
	}
	_ = c.Wait()
	if !asked(c.Process.Pid).dead() {
		t.Error("a process that is gone lives")
	}
}

// Records of threads that began at once come in any order.
func TestOrderOfBeginning(t *testing.T) {
	out := newRows()
	in := newInterpreter(&out, noCards{})
	for _, r := range []ring.Record{
		{Kind: ring.Grew, B: 10, C: 7},
		{Kind: ring.Alloc, A: 1, B: 100, C: 7},
		{Kind: ring.Device, C: 1 << 20},
		{Kind: ring.Primary, A: 7, B: 1500, C: 500},
	} {
		in.take(&r)
	}
	if got := in.devices[0].traced; got != 1110 {
		t.Errorf("%d bytes traced, want 1110", got)
	}
	in.take(&ring.Record{Kind: ring.ContextGone})
	if got := in.devices[0].traced; got != 0 {
		t.Errorf("%d bytes traced when the context is gone", got)
	}
}

// Code that took the place of other code is found.
func TestLibrariesReplaced(t *testing.T) {
	var l libraries
	l.add(library{from: 0x1000, to: 0x3000, path: "/lib/liba.so"})
	l.add(library{from: 0x5000, to: 0x6000, path: "/lib/libc.so"})
	l.add(library{from: 0x1000, to: 0x4000, path: "/lib/libb.so"})
	for at, want := range map[uint64]string{0x1800: "b", 0x3800: "b", 0x5800: "c"} {
		if lib := l.find(at); lib == nil || lib.owner != want {
			t.Errorf("%#x: %+v, want %s", at, lib, want)
		}
	}
}
