package capture

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// failing is a writer with room for some bytes, from which cannot be read.
type failing struct {
	room int
	err  error
}

func (f *failing) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	if f.room -= n; n < len(b) {
		return n, f.err
	}
	return n, nil
}

// shortened is a file that lost its last byte.
type shortened struct{ *fullDisk }

func (s shortened) ReadAt(b []byte, at int64) (int, error) {
	return io.NewSectionReader(s.File, 0, 2).ReadAt(b, at)
}

// TestRescue goes on in the first folder that works, with what was written before, if that can be read.
func TestRescue(t *testing.T) {
	file := func(room int) *fullDisk {
		f, err := os.Create(filepath.Join(t.TempDir(), "to"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return &fullDisk{f, room}
	}
	for name, c := range map[string]struct {
		to      io.Writer
		folders []string
		want    string // in the file; "" for none
		cause   error
	}{
		"no need":                  {file(9), []string{""}, "", nil},
		"at once":                  {file(0), []string{""}, "abcdef", syscall.ENOSPC},
		"in the midst":             {file(4), []string{""}, "abcdef", syscall.ENOSPC},
		"in the second folder":     {file(4), []string{"none", ""}, "abcdef", syscall.ENOSPC},
		"nowhere":                  {file(4), []string{"none"}, "", syscall.ENOSPC},
		"not to be read":           {&failing{4, syscall.ENOSPC}, []string{""}, "", syscall.ENOSPC},
		"not to be read, at once":  {&failing{0, syscall.ENOSPC}, []string{""}, "abcdef", syscall.ENOSPC},
		"a pipe that nobody reads": {&failing{0, syscall.EPIPE}, []string{""}, "", syscall.EPIPE},
		"shorter than written":     {shortened{file(4)}, []string{""}, "", syscall.ENOSPC},
	} {
		folder := t.TempDir()
		r := &rescue{to: c.to, name: "trace"}
		for _, f := range c.folders {
			r.folders = append(r.folders, filepath.Join(folder, f))
		}
		var err error
		for _, part := range []string{"abc", "def"} {
			if err == nil {
				_, err = io.WriteString(r, part)
			}
		}
		err = r.end(err)
		got, _ := os.ReadFile(filepath.Join(folder, "trace"))
		if string(got) != c.want || !errors.Is(err, c.cause) || c.want != "" && !strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestRescueEnds removes what was rescued of a trace that could not be finished.
func TestRescueEnds(t *testing.T) {
	folder, odd := t.TempDir(), errors.New("odd")
	r := &rescue{to: &failing{0, syscall.ENOSPC}, name: "trace", folders: []string{folder}}
	if _, err := io.WriteString(r, "abc"); err != nil {
		t.Fatal(err)
	}
	if err := r.end(odd); !errors.Is(err, odd) || !errors.Is(err, syscall.ENOSPC) || exists(filepath.Join(folder, "trace")) {
		t.Errorf("%v", err)
	}
}
