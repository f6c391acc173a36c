package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// flagTest shows that a flag, or a variable of the environment, does something: with it a command does what is wanted, and without it
// does not.
type flagTest struct {
	name    string   // such as "gmplan layout --align", or GM_LIMIT
	command string   // of a shell; what is in {{ }} is left out in the second run
	with    []string // expressions that match what is printed with it, and not without it
	without []string // those that match without it, and not with it
	source  string   // in place of all that: a test of Go that sets a field
	field   string
}

// TestFlags runs commands with each flag of each tool and without it. A flag that does nothing is a failure, as is one with no test.
func TestFlags(t *testing.T) {
	dependOnSources(t)
	tests := readFlagTests(t, "testdata/flags/flags.txt")
	listed := map[string]bool{}
	for i := range tests {
		listed[tests[i].name] = true
	}
	for _, name := range append(toolFlags(t), variables(t)...) {
		if !listed[name] {
			t.Errorf("%s has no test in testdata/flags/flags.txt", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s is tested, but is not there", name)
	}
	env := flagEnvironment(t)
	for i := range tests {
		t.Run(strings.ReplaceAll(tests[i].name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			tests[i].run(t, env)
		})
	}
}

func (f *flagTest) run(t *testing.T, env []string) {
	if f.source != "" {
		text, err := os.ReadFile(f.source)
		if err != nil || !strings.Contains(string(text), f.field) {
			t.Errorf("%s does not set %s: %v", f.source, f.field, err)
		}
		return
	}
	with, without := runIn(t, env, optional.ReplaceAllString(f.command, "$1")), runIn(t, env, optional.ReplaceAllString(f.command, ""))
	check := func(expressions []string, yes, no, how string) {
		for _, expression := range expressions {
			e, err := regexp.Compile("(?m)" + expression)
			if err != nil {
				t.Fatal(err)
			}
			if !e.MatchString(yes) || e.MatchString(no) {
				t.Errorf("%s: %q is wanted %s. With it:\n%s\nWithout it:\n%s", f.command, expression, how, with, without)
			}
		}
	}
	check(f.with, with, without, "with it alone")
	check(f.without, without, with, "without it alone")
}

var optional = regexp.MustCompile(`\{\{(.*?)\}\}`)

// runIn runs a command in an empty folder, and returns what it prints and its status.
func runIn(t *testing.T, env []string, command string) string {
	t.Helper()
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "sh", "-c", command)
	c.Dir, c.WaitDelay = dir, time.Second
	c.Env = append(slices.Clone(env), "TMPDIR="+dir, "GM_DIR="+filepath.Join(dir, "pages"))
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%sstatus %d\n", out, c.ProcessState.ExitCode())
}

// readFlagTests reads a file of tests: a name on a line of its own, and indented a command and what begins with + (with), - (without).
func readFlagTests(t *testing.T, name string) []flagTest {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var tests []flagTest
	for i, line := range strings.Split(string(text), "\n") {
		rest, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !indented:
			tests = append(tests, flagTest{name: line})
		case len(tests) == 0:
			t.Fatalf("%s:%d: of which flag?", name, i+1)
		default:
			tests[len(tests)-1].add(rest)
		}
	}
	for _, f := range tests {
		if err := f.check(); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
	return tests
}

func (f *flagTest) add(line string) {
	if expression, ok := strings.CutPrefix(line, "+ "); ok {
		f.with = append(f.with, expression)
	} else if expression, ok := strings.CutPrefix(line, "- "); ok {
		f.without = append(f.without, expression)
	} else if source, ok := strings.CutPrefix(line, "in "); ok {
		f.source, f.field, _ = strings.Cut(source, ": ")
	} else {
		f.command = strings.TrimPrefix(f.command+"\n"+line, "\n")
	}
}

// check says what is wrong with a test: it must leave out the flag, and nothing that goes without it.
func (f *flagTest) check() error {
	if f.source != "" {
		return nil
	}
	left := optional.FindAllString(f.command, -1)
	if len(left) == 0 || len(f.with)+len(f.without) == 0 {
		return fmt.Errorf("nothing is left out in the second run, or nothing is expected: %q", f.command)
	}
	name := f.name[strings.LastIndexByte(f.name, ' ')+1:]
	short := map[string]string{"--output": "-o", "--memory": "-m", "--quiet": "-q"}[name]
	for _, l := range left {
		words := strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune("{}= ", r) })
		if slices.Contains(words, name) || slices.Contains(words, short) {
			return nil
		}
	}
	return fmt.Errorf("what is left out is %q, not the flag", left)
}

// toolFlags returns the flags of all commands of all tools, as their completion has them.
func toolFlags(t *testing.T) []string {
	t.Helper()
	line := regexp.MustCompile(`^complete -c (\w+) -n '__fish_seen_subcommand_from ([\w-]+)' -l (\S+)`)
	var all []string
	for _, tool := range []string{"gmtrace", "gmplan", "gmbench", "gmstitch", "gmswap"} {
		script, err := exec.Command(tool, "completion", "fish").Output()
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.Lines(string(script)) {
			if m := line.FindStringSubmatch(text); m != nil {
				all = append(all, fmt.Sprintf("%s %s --%s", m[1], m[2], m[3]))
			}
		}
	}
	if len(all) < 100 {
		t.Fatalf("only %d flags were found: %q", len(all), all)
	}
	return slices.Compact(all) // a flag whose values are known has two lines
}

// TestFlagsWithoutValues leaves out the value of each flag. What is said of that is about the flag, and not in words of the parser.
func TestFlagsWithoutValues(t *testing.T) {
	dependOnSources(t)
	missing := 0
	for _, name := range toolFlags(t) {
		words := strings.Fields(name)
		got, _ := exec.Command(words[0], words[1], words[2]).CombinedOutput()
		if text := string(got); strings.Contains(text, "needs a value") {
			missing++
		} else if regexp.MustCompile(`EOL|value value|<arg>|expected \w+ value`).MatchString(text) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if missing < 50 {
		t.Errorf("only %d flags need a value", missing)
	}
}

// variables returns the names of variables that are read in the sources.
func variables(t *testing.T) []string {
	t.Helper()
	word := regexp.MustCompile(`"(GM(?:_|TRACE_|SWAP_|STITCH_)[A-Z_]*[A-Z])"`)
	seen := map[string]bool{}
	for _, pattern := range []string{"*/*.go", "../internal/*/*.go", "../internal/*/*/*.go", "../internal/*/*/*.c", "../internal/*/*/python/*/*.py"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "cuda/fake") || strings.Contains(file, "torch/pythons") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range word.FindAllStringSubmatch(string(text), -1) {
				seen[m[1]] = true
			}
		}
	}
	var all []string
	for name := range seen {
		all = append(all, name)
	}
	return all
}

// TestVariablesAreDocumented looks for each variable that is read in the documents.
func TestVariablesAreDocumented(t *testing.T) {
	var text strings.Builder
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	for _, name := range variables(t) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text.String()) {
			t.Errorf("no document has %s", name)
		}
	}
}

// flagEnvironment makes the files that the commands need, in a folder $D, and returns the environment for them.
func flagEnvironment(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := append(os.Environ(), "D="+dir, "ROOT="+root, "LD_LIBRARY_PATH="+os.Getenv("FAKE"), "PYTHONDONTWRITEBYTECODE=1", "STUB_TORCH_CUDA=1",
		"GMSTITCH_TORCH=pluggable",
		"HOOK="+root+"/internal/torch/gmtrace/testdata/stub", "GLUE="+root+"/internal/torch/gmstitch/testdata/stub",
		"OFFLOAD="+root+"/internal/torch/gmswap/testdata", "LIB="+root+"/internal/libgm/library", "TMPDIR="+dir)
	c := exec.Command("sh", "-e", filepath.Join(root, "tools/testdata/flags/setup.sh"))
	c.Dir, c.Env = dir, env
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return env
}
