// Package tools tests the command lines as their users run them: as processes, with pipes, by the scripts in testdata.
package tools

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gm/internal/cuda/fake"
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin, err := os.MkdirTemp("", "gm-tools-*")
	if err == nil {
		defer os.RemoveAll(bin)
		// What is part of gmtrace, gmstitch and gmswap.
		err = command("make", "-s", "-C", "..", "internal/capture/preload/libgmtrace.so", "internal/libgm/library/libgm.so",
			"internal/libgm/library/libgmpreload.so")
	}
	if err == nil {
		err = command("go", "build", "-o", bin, "./gmtrace", "./gmplan", "./gmbench", "./gmstitch", "./gmswap")
	}
	if err == nil {
		err = buildFake(filepath.Join(bin, "fake"))
	}
	if err == nil {
		err = os.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the tools:", err)
		return 1
	}
	return m.Run()
}

// buildFake builds a CUDA driver that needs no GPU, and a program that uses it.
func buildFake(folder string) error {
	if err := os.Mkdir(folder, 0o777); err != nil {
		return err
	}
	libraries, err := fake.Build(folder)
	if err != nil {
		return err
	}
	err = command("gcc", "-std=gnu11", "-I"+libraries.Include, "-L"+folder, "-pthread",
		"-o", filepath.Join(folder, "driver"), "../internal/capture/testdata/driver.c", "-lcuda")
	if err != nil {
		return err
	}
	return os.Setenv("FAKE", folder)
}

func command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func TestScripts(t *testing.T) {
	dependOnSources(t)
	data, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("DATA", data)
			env.Setenv("FAKE", os.Getenv("FAKE"))
			env.Setenv("TMPDIR", env.WorkDir)
			return nil
		},
	})
}

// dependOnSources reads the folders of all sources, so that go test, which does not see what TestMain builds, keeps no result of
// older ones.
func dependOnSources(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules" || entry.Name() == "out") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
