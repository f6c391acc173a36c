package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTry changes a package whose tests miss some changes on purpose.
func TestTry(t *testing.T) {
	const dir = "testdata/sample"
	m, err := mutate(dir, append([]string{"call"}, choices...))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	c, err := m.try([]string{dir}, func(x mutant) { got = append(got, strings.TrimPrefix(x.String(), dir+"/")) })
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		"sample.go:10: Choose: less: xs[i] < xs[best]",
		"sample.go:22: Keep: equal: x == 0",
		"sample.go:23: Keep: call: clear(set)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("survivors\n%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c.tried != 11 || c.killed != c.tried-len(want) || c.unreached != 2 {
		t.Errorf("%+v", c)
	}
}

// TestEquivalent reads the list that is kept, and lists of one change: with its reason, and without.
func TestEquivalent(t *testing.T) {
	if _, err := readEquivalent("equivalent.txt"); err != nil {
		t.Error(err)
	}
	const line = "internal/a/b.go: f: less: x < y"
	name := filepath.Join(t.TempDir(), "list")
	read := func(text string) (equivalents, error) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readEquivalent(name)
	}
	for _, text := range []string{line, "# The order is free.\n\n" + line, "# The order is free.\ninternal/a/b.go"} {
		if _, err := read(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	e, err := read("# The order is free.\n" + line + "\n")
	if err != nil {
		t.Fatal(err)
	}
	kinds, dirs := []string{"less"}, []string{"internal/a"}
	if e.stale(dirs, kinds) == nil {
		t.Error("a change that was not found is not stale")
	}
	if err := errors.Join(e.stale(dirs, []string{"call"}), e.stale([]string{"internal/b"}, kinds)); err != nil {
		t.Errorf("a change that was not looked for: %v", err)
	}
	change := mutant{file: "internal/a/b.go", function: "f", kind: "less", text: "x < y"}
	other := change
	other.text = "y < x"
	if e.takes(other) || !e.takes(change) || e.stale(dirs, kinds) != nil {
		t.Errorf("%v after it was found", e)
	}
}
