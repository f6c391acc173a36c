package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gm/internal/version"
)

// TestRecord compares the list in the wheel with what is in it.
func TestRecord(t *testing.T) {
	t.Parallel()
	r, err := zip.OpenReader(made(t, "gm-*.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	contents, list := map[string][]byte{}, ""
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if contents[f.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, ".dist-info/RECORD") {
			list = string(contents[f.Name])
			delete(contents, f.Name)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(list)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		data, is := contents[row[0]]
		if strings.HasSuffix(row[0], "/RECORD") && row[1] == "" {
			continue
		}
		sum := sha256.Sum256(data)
		if !is || row[1] != "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]) || row[2] != strconv.Itoa(len(data)) {
			t.Errorf("%q: the wheel has %d bytes", row, len(data))
		}
		delete(contents, row[0])
	}
	for name := range contents {
		t.Errorf("%s is not listed", name)
	}
}

// TestModuleVersion: the module is of the same version as the tools.
func TestModuleVersion(t *testing.T) {
	text, err := python.ReadFile("python/gm/__init__.py")
	if err != nil || !strings.Contains(string(text), "\n__version__ = \""+version.Number+"\"\n") {
		t.Errorf("gm.__version__ is not %s, %v", version.Number, err)
	}
}

// TestTags checks that a wheel is only for systems on which it loads.
func TestTags(t *testing.T) {
	for needed, want := range map[glibc][]string{
		{2, 17}: {"manylinux_2_17_x86_64", "manylinux2014_x86_64"},
		{2, 34}: {"manylinux_2_34_x86_64"},
	} {
		if got, err := tags(needed); err == nil && !slices.Equal(got, want) {
			t.Errorf("glibc %v: %q, want %q", needed, got, want)
		}
	}
}

// TestWheel installs the wheel into a new environment, runs its tools, and uses its module as a program does.
func TestWheel(t *testing.T) {
	t.Parallel()
	file, dir := made(t, "gm-*.whl"), t.TempDir()
	environment := filepath.Join(dir, "environment")
	if out, err := exec.Command("python3", "-m", "venv", environment).CombinedOutput(); err != nil {
		t.Skipf("python3 -m venv: %v\n%s", err, out)
	}
	command(t, filepath.Join(environment, "bin/pip"), "install", "--no-index", "--no-deps", file)
	for _, tool := range tools {
		if got := command(t, filepath.Join(environment, "bin", tool), "--version"); !strings.HasPrefix(got, tool+" ") {
			t.Errorf("%s --version: %s", tool, got)
		}
	}
	checkLinks(t, filepath.Join(environment, "share/doc/gm"))
	data := abs(t, "../testdata")
	program := exec.Command(filepath.Join(environment, "bin/python"), abs(t, "testdata/module.py"), filepath.Join(data, "captures/oom.parquet"))
	program.Dir = dir
	program.Env = []string{"PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", "HOME=" + dir, "PYTHONPATH=" + abs(t, "testdata"), "SNAPSHOT=" + filepath.Join(data, "snapshots/streams.pickle.gz")}
	if out, err := program.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	command(t, filepath.Join(environment, "bin/pip"), "uninstall", "-y", "gm")
	if left, err := filepath.Glob(filepath.Join(environment, "bin/gm*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func abs(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}
