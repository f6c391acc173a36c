package column

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSourceFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("skipped, read"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, s); got != "skipped, read" || s.Name() != name {
		t.Errorf("%s: %q", s.Name(), got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// Standard input is read from its current offset, and left open.
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(9, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if s, err = openFile(file, "standard input", true); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s); got != "read" {
		t.Errorf("%q", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Errorf("not left open: %v", err)
	}
}

func content(t *testing.T, s *Source) string {
	t.Helper()
	b := make([]byte, s.Size())
	if err := readAt(s, b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSourcePipe(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456"), 500_001)
	go func() {
		for i := 0; i < len(want); i += 10_000 {
			_, _ = w.Write(want[i:min(i+10_000, len(want))])
		}
		w.Close()
	}()
	s, err := openFile(r, "a pipe", false)
	if err != nil {
		t.Fatal(err)
	}
	if content(t, s) != string(want) {
		t.Errorf("%d bytes, not the same", s.Size())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSourceRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenSource(dir); message(err) != dir+" is a directory" {
		t.Error(err)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := OpenSource(missing); message(err) != "open "+missing+": no such file or directory" {
		t.Error(err)
	}
	if _, err := OpenSource("/dev/ptmx"); err == nil || !strings.Contains(err.Error(), "terminal") {
		t.Logf("no terminal to try: %v", err)
	} else if err.Error() != "/dev/ptmx is a terminal: name a file, or use a pipe" {
		t.Error(err)
	}
	_, err := sampleTable().Open(missing)
	if message(err) != "sample: open "+missing+": no such file or directory" {
		t.Error(err)
	}
}
