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
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin, err := os.MkdirTemp("", "gm-tools-*")
	if err == nil {
		defer os.RemoveAll(bin)
		build := exec.Command("go", "build", "-o", bin, "./gmtrace", "./gmplan", "./gmbench")
		build.Stderr = os.Stderr
		err = build.Run()
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
