package tools

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what commands print into the documents, in place of what is there")

// rest stands for the lines of an output that a document leaves out.
const rest = "..."

// TestDocs runs the commands of documents, lines that begin with a dollar, and compares what they print with the lines behind.
func TestDocs(t *testing.T) {
	dependOnSources(t)
	data, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(data, filepath.Join(dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	const name = "../docs/needs.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	var out []string
	for i := 0; i < len(lines); {
		out = append(out, lines[i])
		command, found := strings.CutPrefix(lines[i], "    $ ")
		i++
		if !found {
			continue
		}
		end := i + outputLength(lines[i:])
		out = append(out, example(t, dir, command, lines[i:end])...)
		i = end
	}
	if *update {
		if err := os.WriteFile(name, []byte(strings.Join(out, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// outputLength returns how many lines belong to an output: those that are indented and no command, and empty ones between them.
func outputLength(lines []string) int {
	n := 0
	for i, line := range lines {
		switch {
		case line == "":
		case !strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "    $ "):
			return n
		default:
			n = i + 1
		}
	}
	return n
}

// example runs a command and returns what it prints, as documents have it: with as many lines as they show.
func example(t *testing.T, dir, command string, shown []string) []string {
	t.Helper()
	c := exec.Command("sh", "-c", command)
	c.Dir = dir
	c.Env = append(c.Environ(), "TMPDIR="+dir)
	printed, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, printed)
		return shown
	}
	var got []string
	if text := strings.TrimRight(string(printed), "\n"); text != "" {
		got = strings.Split(text, "\n")
	}
	if n := len(shown); n > 0 && strings.TrimSpace(shown[n-1]) == rest && len(got) >= n {
		got = append(got[:n-1:n-1], rest)
	}
	for i, line := range got {
		if line != "" {
			got[i] = "    " + strings.TrimRight(line, " ")
		}
	}
	if strings.Join(got, "\n") != strings.Join(shown, "\n") && !*update {
		t.Errorf("%s prints\n%s\nand not\n%s", command, strings.Join(got, "\n"), strings.Join(shown, "\n"))
	}
	return got
}
