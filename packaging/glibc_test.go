package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// oldest is the oldest glibc on x86-64 that gm promises to load on.
var oldest = glibc{2, 17}

// TestLibraries looks at the libraries that the tools load into programs, as make built them.
func TestLibraries(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("versions.h is for x86-64")
	}
	var files []string
	for _, name := range []string{
		"capture/preload/libgmtrace.so", "libgm/library/libgm.so", "libgm/library/libgmpreload.so", "libgm/library/libgmgate.so",
	} {
		files = append(files, filepath.Join("../internal", name))
	}
	got, err := oldestGlibc(files)
	if err != nil {
		t.Fatal(err)
	}
	if got.newer(oldest) || got == (glibc{}) {
		t.Errorf("glibc %v is needed, not %v", got, oldest)
	}
	if dumped := objdump(t, files); dumped != got {
		t.Errorf("glibc %v is needed; objdump says %v", got, dumped)
	}
}

// objdump returns what objdump says that files need.
func objdump(t *testing.T, files []string) (most glibc) {
	out, err := exec.Command("objdump", append([]string{"-T"}, files...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`GLIBC_(\d+)\.(\d+)`).FindAllStringSubmatch(string(out), -1) {
		major, _ := strconv.Atoi(m[1])
		minor, _ := strconv.Atoi(m[2])
		if g := (glibc{major, minor}); g.newer(most) {
			most = g
		}
	}
	return most
}

// TestNeeds compares what is found with versions that are known, and refuses what is no executable.
func TestNeeds(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no ELF"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := oldestGlibc([]string{text}); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("a text: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := oldestGlibc([]string{self}); err != nil || got != (glibc{}) {
		t.Errorf("this test, which links no C: %v, %v", got, err)
	}
	for _, c := range []struct {
		a, b  glibc
		newer bool
	}{
		{glibc{2, 9}, glibc{2, 17}, false}, {glibc{2, 17}, glibc{2, 9}, true}, {glibc{3, 0}, glibc{2, 34}, true}, {glibc{2, 3}, glibc{2, 3}, false},
	} {
		if c.a.newer(c.b) != c.newer {
			t.Errorf("%v newer than %v: not %v", c.a, c.b, c.newer)
		}
	}
}
