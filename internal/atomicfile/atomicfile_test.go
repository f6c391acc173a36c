package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func text(words string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, words)
		return err
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	if err := os.Symlink("out", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, path, link} { // at first to what is not there yet
		if err := Write(name, text(name)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != name || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	failed := errors.New("failed")
	if err := Write(path, func(w io.Writer) error { return errors.Join(text("half")(w), failed) }); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadFile(path); string(got) != link || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 2 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestInPlace writes to what is no regular file, and stays so.
func TestInPlace(t *testing.T) {
	if err := Write(os.DevNull, text("nothing")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is a file now", os.DevNull)
	}
}

func TestNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "out")
	err := Write(path, text("words"))
	if err == nil || err.Error() != "write "+path+": no such file or directory" || strings.Contains(err.Error(), ".gm-") {
		t.Errorf("the error is %v", err)
	}
}
