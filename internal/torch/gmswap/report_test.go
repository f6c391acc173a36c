package gmswap

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWholeFile writes an account as other outputs are written: whole, through links, with the mode of what was there, and into what
// is no regular file as it is.
func TestWholeFile(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	dir, home := t.TempDir(), t.TempDir()
	if err := Install(home); err != nil {
		t.Fatal(err)
	}
	write := func(name string) error {
		cmd := exec.Command(python, "-S", "-c", "import sys; from gmswap_hook import report; report.write_whole(sys.argv[1], 'text')", name)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+home, "PYTHONDONTWRITEBYTECODE=1")
		return cmd.Run()
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, file, "/dev/null"} {
		if err := write(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Chmod(file, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := write(link); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"/dev/full", filepath.Join(dir, "no/file"), dir} {
		if write(name) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v", entries, err)
	}
}
