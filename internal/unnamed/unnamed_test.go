package unnamed

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen(t *testing.T) {
	for name, open := range map[string]func(string) (*os.File, error){"without": Open, "removed": named} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, err := open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("the folder holds %v, %v", left, err)
			}
			if _, err := f.WriteString("bytes"); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(io.NewSectionReader(f, 0, 10))
			if err != nil || string(got) != "bytes" {
				t.Errorf("read %q, %v", got, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenTemporary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if got := filepath.Dir(f.Name()); got != dir {
		t.Errorf("in %s, want %s", got, dir)
	}
}

func TestOpenNowhere(t *testing.T) {
	if f, err := Open(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Errorf("opened %s", f.Name())
	}
}
