package main

import (
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

// TestEquivalent reads the list that is kept, and a list without reasons.
func TestEquivalent(t *testing.T) {
	e, err := readEquivalent("equivalent.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range e {
		if file, _, _ := strings.Cut(line, ":"); !strings.HasPrefix(file, "internal/") || strings.Count(line, ": ") < 3 {
			t.Errorf("%q is not FILE: FUNCTION: KIND: TEXT", line)
		}
	}
	if _, err := readEquivalent("testdata/sample/sample.go"); err == nil {
		t.Error("a list without reasons is read")
	}
}
