package tools

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what commands print into the documents, in place of what is there")

// TestDocs runs the sessions of all documents and compares what their commands print with what the documents show. CONTRIBUTING.md
// says how a session is written.
func TestDocs(t *testing.T) {
	dependOnSources(t)
	for _, name := range documents(t) {
		t.Run(strings.TrimPrefix(filepath.ToSlash(name), "../"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), prompt) {
				t.Skip("no sessions")
			}
			p := page{T: t, dir: sessionFolder(t)}
			p.read(strings.Split(string(text), "\n"))
			if *update && !t.Failed() {
				if err := os.WriteFile(name, []byte(strings.Join(p.out, "\n")), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// documents returns the Markdown files of the repository, but not those of test data within packages.
func documents(t *testing.T) []string {
	var names []string
	for _, pattern := range []string{"../*.md", "../*/*.md", "../experiments/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		t.Fatal("no documents")
	}
	return names
}

// sessionFolder makes the folder in which the commands of one document run. It holds testdata, and bin with the tools.
func sessionFolder(t *testing.T) string {
	dir := t.TempDir()
	data, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	tool, err := exec.LookPath("gmtrace")
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"testdata": data, "bin": filepath.Dir(tool)} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	indent = "    "
	prompt = indent + "$ "
	// rest stands for the lines of an output that a document leaves out.
	rest = "..."
)

// A page is a document whose sessions are being run.
type page struct {
	*testing.T
	dir   string
	marks marks
	out   []string // the document with what the commands print
}

// marks are what comments right before a session say of it.
type marks struct {
	skip   bool // not run: REASON
	times  bool // times vary
	status int  // exit status N
}

var comment = regexp.MustCompile(`^<!-- (not run: .|times vary|exit status |\$ )(.*) -->$`)

func (p *page) read(lines []string) {
	for i := 0; i < len(lines); {
		line := lines[i]
		p.out = append(p.out, line)
		i++
		if mark := comment.FindStringSubmatch(line); mark != nil {
			p.mark(mark[1], mark[2])
			continue
		}
		if line != "" && !strings.HasPrefix(line, indent) {
			p.marks = marks{}
		}
		command, found := strings.CutPrefix(line, prompt)
		if !found || p.marks.skip {
			continue
		}
		n := outputLength(lines[i:])
		p.out = append(p.out, p.example(command, lines[i:i+n])...)
		i += n
	}
}

func (p *page) mark(kind, value string) {
	switch kind {
	case "times vary":
		p.marks.times = true
	case "exit status ":
		status, err := strconv.Atoi(value)
		if err != nil {
			p.Errorf("exit status %q in a comment: want a number", value)
		}
		p.marks.status = status
	case "$ ":
		if printed, err := p.run(value); err != nil {
			p.Errorf("%s: %v\n%s", value, err, printed)
		}
	default:
		p.marks.skip = true
	}
}

// outputLength returns how many lines belong to an output: those that are indented and no command, and empty ones between them.
func outputLength(lines []string) int {
	n := 0
	for i, line := range lines {
		switch {
		case line == "":
		case !strings.HasPrefix(line, indent) || strings.HasPrefix(line, prompt):
			return n
		default:
			n = i + 1
		}
	}
	return n
}

// example runs a command and returns what the document should show of its output.
func (p *page) example(command string, shown []string) []string {
	text, err := p.run(command)
	if err != nil {
		p.Errorf("%s: %v\n%s", command, err, text)
		return shown
	}
	var got []string
	if text != "" {
		got = strings.Split(text, "\n")
	}
	for i, line := range got {
		if line != "" {
			got[i] = indent + strings.TrimRight(line, " ")
		}
	}
	if p.matches(got, shown) {
		return shown
	}
	if !*update {
		p.Errorf("%s prints\n%s\nand not\n%s", command, strings.Join(got, "\n"), strings.Join(shown, "\n"))
	}
	if n := len(shown); n > 0 && strings.TrimSpace(shown[n-1]) == rest && len(got) >= n {
		got = append(got[:n-1:n-1], indent+rest)
	}
	return got
}

// run runs a command and returns what it prints, without line feeds at the end. Another exit status than the one marked is an error.
func (p *page) run(command string) (string, error) {
	c := exec.Command("sh", "-c", command)
	c.Dir = p.dir
	c.Env = append(c.Environ(), "TMPDIR="+p.dir, "TZ=UTC")
	printed, err := c.CombinedOutput()
	text := strings.TrimRight(string(printed), "\n")
	if c.ProcessState == nil {
		return text, err
	}
	if got := c.ProcessState.ExitCode(); got != p.marks.status {
		return text, fmt.Errorf("exit status %d, want %d", got, p.marks.status)
	}
	return text, nil
}

// matches says whether an output is what the document shows, where a line of three dots stands for any number of lines.
func (p *page) matches(got, shown []string) bool {
	for i, line := range shown {
		if strings.TrimSpace(line) == rest {
			for skipped := i; skipped <= len(got); skipped++ {
				if p.matches(got[skipped:], shown[i+1:]) {
					return true
				}
			}
			return false
		}
		if i == len(got) || p.comparable(got[i]) != p.comparable(line) {
			return false
		}
	}
	return len(got) == len(shown)
}

var (
	duration = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s)\b`)
	spaces   = regexp.MustCompile(` +`)
)

// comparable returns a line without what may differ from run to run: durations where times vary, and the width of their columns.
func (p *page) comparable(line string) string {
	if !p.marks.times {
		return line
	}
	return spaces.ReplaceAllString(duration.ReplaceAllString(line, "TIME"), " ")
}
