package capture

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// dumpOf puts a dump of PyTorch's history into a folder.
func dumpOf(t *testing.T, folder, name string) string {
	t.Helper()
	data, err := os.ReadFile("../torch/snapshot/testdata/" + name + ".pickle")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// quiet is a process that warns of nothing, and holds no descriptor.
func quiet(folder string) *process {
	p := newProcess(1, folder, &cards{}, func(string, ...any) {})
	p.drain = func() {}
	_ = p.life.close()
	return p
}

// TestTakeDumps keeps the last dump that could be read; the first that cannot be read ends the history.
func TestTakeDumps(t *testing.T) {
	folder := t.TempDir()
	p := quiet(folder)
	good, bad := dumpOf(t, folder, "small-p2"), filepath.Join(folder, "bad")
	if err := os.WriteFile(bad, []byte("no pickle"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !p.takeDump(good) || p.failed != nil || p.history == nil || exists(good) {
		t.Fatalf("%v", p.failed)
	}
	kept, err := os.ReadFile(takenName(folder, 1))
	if err != nil {
		t.Fatal(err)
	}
	if !p.takeDump(bad) || p.failed == nil || exists(bad) {
		t.Errorf("a dump that is none: %v", p.failed)
	}
	first := p.failed
	if !p.takeDump(dumpOf(t, folder, "list")) || p.failed != first {
		t.Errorf("%v, %v before", p.failed, first)
	}
	if now, err := os.ReadFile(takenName(folder, 1)); err != nil || !slices.Equal(now, kept) {
		t.Errorf("another dump was kept: %v", err)
	}
}

// TestNoDescriptors leaves a dump for later where files cannot be opened.
func TestNoDescriptors(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	p := quiet(t.TempDir())
	file := dumpOf(t, p.folder, "list")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	taken := p.takeDump(file)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if taken || p.nextDump != 0 || p.failed != nil {
		t.Errorf("taken %v, next dump %d, %v", taken, p.nextDump, p.failed)
	}
	if !p.takeDump(file) || p.nextDump != 1 || p.failed != nil {
		t.Errorf("later: next dump %d, %v", p.nextDump, p.failed)
	}
}

// TestKeepNoDump removes a dump that cannot be kept, and the one before it.
func TestKeepNoDump(t *testing.T) {
	for name, harm := range map[string]func(p *process, f *os.File) error{
		"no folder": func(p *process, _ *os.File) error { p.folder += "/none"; return nil },
		"no file":   func(_ *process, f *os.File) error { return f.Close() },
	} {
		p := quiet(t.TempDir())
		for _, file := range []string{takenName(p.folder, 1), filepath.Join(p.folder, "dump")} {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Open(filepath.Join(p.folder, "dump"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := harm(p, f); err != nil {
			t.Fatal(err)
		}
		p.keepDump(f)
		if exists(f.Name()) || exists(takenName(p.folder, 1)) {
			t.Errorf("%s: a dump is kept", name)
		}
	}
}

// TestHeadlessHistory takes a history for headless whose first dump fills PyTorch's ring of a device: the dump has 13 entries and 3.
func TestHeadlessHistory(t *testing.T) {
	for _, c := range []struct {
		first, later int // entries of the ring, when the first dump is read and the next
		want         bool
	}{{13, 13, true}, {14, 14, false}, {0, 0, false}, {14, 1, false}, {13, 100, true}} {
		p := quiet(t.TempDir())
		for i, name := range []string{"small-p2", "old"} {
			p.greeting.Ring = []int{c.first, c.later}[i]
			f, err := os.Open(dumpOf(t, p.folder, name))
			if err != nil {
				t.Fatal(err)
			}
			p.addDump(f)
			if err := f.Close(); err != nil || p.failed != nil {
				t.Fatal(err, p.failed)
			}
		}
		if p.headless != c.want {
			t.Errorf("%+v: headless %v", c, p.headless)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMarks reads marks up to one that is cut short; their times go on.
func TestMarks(t *testing.T) {
	long := strings.Repeat("x", maxMark)
	for text, want := range map[string][]mark{
		"":                                   nil,
		"10 a\n20 b\n15 a\n":                 {{10, "a"}, {20, "b"}, {20, "a"}},
		"-5 a\n-7 b\n3 c\n":                  {{0, "a"}, {0, "b"}, {3, "c"}},
		"10 " + long + "\n20 " + long + "\n": {{10, long}, {20, long}},
		"10 a\n20 " + long + "x\n30 b\n":     {{10, "a"}},
		"10 a\n20\n30 b\n":                   {{10, "a"}},
		"10 a\nx b\n30 c\n":                  {{10, "a"}},
		"10 \n":                              {{10, ""}},
	} {
		p := quiet(t.TempDir())
		if err := os.WriteFile(filepath.Join(p.folder, "marks.1"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := p.marks(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%.30q: %v, %v, want %v", text, got, err, want)
		}
	}
	p := quiet(t.TempDir())
	if got, err := p.marks(); err != nil || got != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(p.folder, "marks.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.marks(); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder: %v", err)
	}
}

// TestMostMarks reads so many marks, and no more.
func TestMostMarks(t *testing.T) {
	p := quiet(t.TempDir())
	if err := os.WriteFile(filepath.Join(p.folder, "marks.1"), bytes.Repeat([]byte("1 \n"), maxMarks+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := p.marks(); err != nil || len(got) != maxMarks {
		t.Errorf("%d marks, %v", len(got), err)
	}
}
