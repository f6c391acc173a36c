package tools

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReliability checks that each promise of docs/reliability.md has a test, and that the tests and scripts that it names exist.
func TestReliability(t *testing.T) {
	text, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	promises := 0
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise |") || strings.HasPrefix(line, "| --- ") {
			continue
		}
		promises++
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 2 || heldBy(t, cells[1]) == 0 {
			t.Errorf("no test: %s", line)
		}
	}
	if promises == 0 {
		t.Error("nothing is promised")
	}
}

var (
	ofPackage = regexp.MustCompile("`([a-z/]+)` ([^;`]*)")
	testName  = regexp.MustCompile(`\bTest\w+`)
	inParens  = regexp.MustCompile(`\((\w[\w-]*)\)`)
)

// heldBy returns how many tests a text names, of those that are there.
func heldBy(t *testing.T, text string) (n int) {
	for _, part := range ofPackage.FindAllStringSubmatch(text, -1) {
		source := sourceOf(t, filepath.Join("..", part[1]))
		for _, name := range testName.FindAllString(part[2], -1) {
			if !strings.Contains(source, "func "+name+"(") {
				t.Errorf("%s has no %s", part[1], name)
				continue
			}
			n++
		}
		for _, script := range inParens.FindAllStringSubmatch(part[2], -1) {
			if _, err := os.Stat(filepath.Join("testdata", script[1]+".txtar")); part[1] == "tools" && err != nil {
				t.Error(err)
			}
		}
	}
	return n
}

// sourceOf returns the tests of a package.
func sourceOf(t *testing.T, dir string) string {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
