package capture

import (
	"os"
	"path/filepath"
	"testing"
)

// What a gmtrace that was killed left behind goes when the next one starts, and nothing else does.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	alive, err := makeFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.remove()
	killed, err := makeFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	killed.lock.Close() // as the system does
	beginning := filepath.Join(parent, folderPrefix+"new")
	for _, other := range []string{beginning, filepath.Join(parent, "other")} {
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweep(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.path); err == nil || len(left) != 3 {
		t.Errorf("left are %q, want those of the living and of others", left)
	}
}
