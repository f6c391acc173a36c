// Package pythons finds the interpreters that tests run Python programs in.
package pythons

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// All returns python3 and those that GM_PYTHONS names, separated by colons. Without a python3 the test is skipped.
func All(t *testing.T) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to run the hook in")
	}
	return append([]string{python}, filepath.SplitList(os.Getenv("GM_PYTHONS"))...)
}

// Each runs a test in each of them.
func Each(t *testing.T, test func(t *testing.T, python string)) {
	t.Helper()
	for _, python := range All(t) {
		t.Run(strings.ReplaceAll(python, "/", "_"), func(t *testing.T) { test(t, python) })
	}
}
