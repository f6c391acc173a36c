package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gm/internal/capture/ring"
	"gm/internal/cli/command"
)

// TestTrouble warns of an error once, and of so many at most.
func TestTrouble(t *testing.T) {
	warned := 0
	s := &Session{told: map[string]bool{}, options: Options{Warn: func(string, ...any) { warned++ }}}
	for i := range 2 * maxTold {
		for range 2 {
			s.trouble(fmt.Errorf("error %d", i))
		}
		if want := min(i+1, maxTold); warned != want {
			t.Fatalf("%d warnings of %d errors, want %d", warned, i+1, want)
		}
	}
}

// TestParseName knows the names of files that are looked for, and no others.
func TestParseName(t *testing.T) {
	for name, want := range map[string]struct {
		kind        string
		pid, number int
	}{
		"ring.7.3": {"ring", 7, 3}, "torch.7.json": {"torch", 7, 0}, "history.7.12.pickle": {"history", 7, 12}, "marks.7": {}, "ring.x.3": {}, "ring.7.3.tmp": {},
		"tmp.7.3": {"tmp", 7, 3}, "libgmtrace.so": {}, "": {},
	} {
		if kind, pid, number := parseName(name); kind != want.kind || pid != want.pid || number != want.number {
			t.Errorf("%s: %q, %d, %d, want %v", name, kind, pid, number, want)
		}
	}
}

// TestKept keeps the folder while something in it exists nowhere else.
func TestKept(t *testing.T) {
	for _, c := range []struct {
		s    Session
		want string
	}{
		{Session{}, ""}, {Session{keep: true}, "f"}, {Session{odd: 1}, "f"}, {Session{waiting: 1}, "f"}, {Session{processes: []*process{{}, {kept: true}}}, "f"},
		{Session{processes: []*process{{}, {broken: true}}}, ""},
	} {
		if c.s.folder = "f"; c.s.Kept() != c.want {
			t.Errorf("%+v: %q", c.s, c.s.Kept())
		}
	}
}

// TestAdd adds rings to the processes that have none, and to new ones for other programs; dumps are read from the least number on.
func TestAdd(t *testing.T) {
	s := newSession(Options{Warn: func(string, ...any) {}}, t.TempDir())
	s.cards = &cards{}
	t.Cleanup(func() {
		for _, p := range s.processes {
			_ = p.close()
		}
	})
	files := map[int]string{}
	for _, pid := range []int{nobody, nobody + 1} {
		files[pid] = emptyRing(t, t.TempDir(), pid)
	}
	for i, c := range []struct {
		kind        string
		pid, number int
		want        []int // the PIDs of processes
		ok          bool
	}{
		{"history", nobody, 2, []int{nobody}, true},
		{"ring", nobody, 1, []int{nobody}, true},
		{"ring", nobody, 2, []int{nobody, nobody}, true},
		{"ring", nobody + 1, 3, []int{nobody, nobody, nobody + 1}, true},
		{"ring", nobody + 2, 3, []int{nobody, nobody, nobody + 1}, false},
		{"torch", nobody + 3, 0, []int{nobody, nobody, nobody + 1, nobody + 3}, false},
		{"another", nobody + 4, 0, []int{nobody, nobody, nobody + 1, nobody + 3}, true},
	} {
		if err := s.add(c.kind, c.pid, c.number, files[c.pid]); (err == nil) != c.ok {
			t.Errorf("%d: %v", i, err)
		}
		var got []int
		for _, p := range s.processes {
			got = append(got, p.pid)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d: processes %v, want %v", i, got, c.want)
		}
	}
	first, last := s.processes[0], s.find(nobody)
	if first.number != 1 || last != s.processes[1] || last.number != 2 || s.find(nobody+9) != nil {
		t.Errorf("rings %d and %d", first.number, last.number)
	}
	for _, c := range []struct{ next, number, want int }{{5, 2, 2}, {1, 2, 1}} {
		if last.nextDump = c.next; s.add("history", nobody, c.number, "dump") != nil || last.nextDump != c.want || last.dumps[c.number] != "dump" {
			t.Errorf("%+v: next %d", c, last.nextDump)
		}
	}
}

// TestDiscover looks at each file once, unless it may be read later.
func TestDiscover(t *testing.T) {
	s := newSession(Options{Warn: func(string, ...any) {}}, t.TempDir())
	s.cards = &cards{}
	for _, name := range []string{"ring.8388608.1", "other", "a.b.c", "history.8388608.0.pickle"} {
		if err := os.WriteFile(filepath.Join(s.folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if s.discover(); s.odd != 1 || s.waiting != 0 || len(s.processes) != 1 {
			t.Errorf("%d odd files, %d waiting, %d processes", s.odd, s.waiting, len(s.processes))
		}
	}
	s.rings = t.TempDir()
	if err := os.WriteFile(filepath.Join(s.rings, "ring.8388609.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s.discover(); s.odd != 2 {
		t.Errorf("%d odd files with one among the rings", s.odd)
	}
}

// TestEnviron has programs load the library in the way that was asked for, and nothing of an enclosing session.
func TestEnviron(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    map[string]string
	}{
		{Options{}, map[string]string{"LD_PRELOAD": "/f/libgmtrace.so:a.so", "LD_AUDIT": "", "GMTRACE_STEPS": "", "GMTRACE_STACKS": "", "GMTRACE_NATIVE": ""}},
		{Options{Audit: true, Steps: &Steps{1, 2}, PythonStacks: true, NativeStacks: true, OnlyOOM: true, Marks: "m:f"}, map[string]string{
			"LD_PRELOAD": "/outer/x.so:a.so", "LD_AUDIT": "/f/libgmtrace.so", "GMTRACE_STEPS": "1:2", "GMTRACE_STACKS": "python", "GMTRACE_NATIVE": "1",
			"GMTRACE_ONLY_OOM": "1", "GMTRACE_MARKS": "m:f", "GMTRACE_DIR": "/f",
		}},
	} {
		s := newSession(c.options, "/f")
		env := command.Environ(s.Environ([]string{"LD_PRELOAD=/outer/x.so:a.so", "GMTRACE_DIR=/outer"}))
		for name, want := range c.want {
			if got := env.Get(name); got != want {
				t.Errorf("%+v: %s is %q, want %q", c.options, name, got, want)
			}
		}
	}
}

// TestCloseKept writes what a ring that is kept has not in its journal yet.
func TestCloseKept(t *testing.T) {
	for _, kept := range []bool{false, true} {
		s, err := NewSession(Options{Warn: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		p := quiet(s.folder)
		p.ring, p.journal = new(ring.Ring), &journal{name: filepath.Join(s.journals(), "journal.1.1"), packer: s.packer}
		p.journal.add(&ring.Record{Kind: ring.Alloc})
		s.processes, s.keep = []*process{p}, kept
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if exists(s.folder) != kept || exists(s.rings) != kept || exists(p.journal.name) != kept {
			t.Errorf("kept %v: folder %v, rings %v, journal %v", kept, exists(s.folder), exists(s.rings), exists(p.journal.name))
		}
		if err := errors.Join(os.RemoveAll(s.folder), os.RemoveAll(s.rings)); err != nil {
			t.Error(err)
		}
	}
}
