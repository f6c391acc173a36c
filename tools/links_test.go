package tools

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link       = regexp.MustCompile(`\]\(([^)#\s]*)#?([^)\s]*)\)`)
	sourcePath = regexp.MustCompile(`\b(internal|formats|tools|experiments|testdata|docs)/[\w./*=-]*[\w/*]`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks checks that the links of all documents lead to a file and a heading, and that the folders and files that they name exist.
// NAME in a path stands for any name.
func TestLinks(t *testing.T) {
	for _, name := range documents(t) {
		text := read(t, name)
		for _, target := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(target[1], "://") {
				continue
			}
			file := name
			if target[1] != "" {
				file = filepath.Join(filepath.Dir(name), target[1])
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: %v", name, target[1], err)
			} else if target[2] != "" && !slugs(read(t, file))[target[2]] {
				t.Errorf("%s: link to %s#%s: no such heading", name, target[1], target[2])
			}
		}
		for _, path := range sourcePath.FindAllString(text, -1) {
			if found, err := filepath.Glob(filepath.Join("..", strings.ReplaceAll(path, "NAME", "*"))); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", name, path)
			}
		}
	}
}

// slugs returns the names by which links reach the headings of a document.
func slugs(text string) map[string]bool {
	all := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		slug := notInSlugs.ReplaceAllString(strings.ToLower(found[1]), "")
		all[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return all
}

// TestArchitecture checks that ARCHITECTURE.md names each folder of internal.
func TestArchitecture(t *testing.T) {
	entries, err := os.ReadDir("../internal")
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "../ARCHITECTURE.md")
	for _, entry := range entries {
		if entry.IsDir() && !strings.Contains(text, " "+entry.Name()+"/ ") {
			t.Errorf("ARCHITECTURE.md says nothing of internal/%s", entry.Name())
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
