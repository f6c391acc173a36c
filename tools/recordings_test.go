package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ofTraces are the commands that take a trace, and what they print or write about $T.
var ofTraces = []struct{ name, command string }{
	{"gmtrace show", "gmtrace show $T"},
	{"gmtrace show", "gmtrace show --top $T"},
	{"gmtrace show", "gmtrace show --at 3 --json $T"},
	{"gmtrace show", "gmtrace show --pprof out --svg out.svg --by stack $T && cat out.svg"},
	{"gmtrace page", "gmtrace page -o out.html $T && cat out.html"},
	{"gmtrace why-oom", "gmtrace why-oom $T"},
	{"gmtrace diff", "gmtrace diff $T $T"},
	{"gmtrace summary", "gmtrace summary -o out --job j $T && sha256sum out/*/*"},
	{"gmtrace tag", "gmtrace tag $T | gmtrace export --format csv"},
	{"gmtrace export", "gmtrace export --format csv $T"},
	{"gmplan layout", "gmplan $T | gmplan show --json | grep -v solve_ns"},
	{"gmplan check", "gmplan layout -o plan $T && gmplan check plan $T"},
	{"gmbench compare", "gmbench --alloc floor,torch,expandable $T"},
	{"gmbench compare", "gmbench --why --alloc torch $T"},
	{"gmbench compare", "gmbench --fit --alloc torch $T"},
	{"gmbench report", "gmbench report --alloc floor,torch -o out.html $T && cat out.html"},
	{"gmbench tune", "gmbench tune --json $T"},
	{"gmbench check", "gmbench check --peak +0% --reserved +0% $T $T"},
	{"gmbench verify", "gmbench verify --limit 2GiB $T"},
	{"gmstitch replay", "gmstitch replay --device sim --alloc stitch $T | grep -o '^[a-z].* requests'"},
}

// TestRecordings gives each command that takes a trace a snapshot in its place, compressed and not. It prints what it prints of the
// imported trace.
func TestRecordings(t *testing.T) {
	dependOnSources(t)
	tested := map[string]bool{}
	for _, c := range ofTraces {
		tested[c.name] = true
	}
	for _, name := range takeTraces(t) {
		if !tested[name] {
			t.Errorf("%s takes a trace, and is not tested with a snapshot", name)
		}
		delete(tested, name)
	}
	for name := range tested {
		t.Errorf("%s is tested, but takes no trace", name)
	}
	for _, snapshot := range []string{"snapshots/oom.pickle.gz", "snapshots/gpt2-cut.pickle.gz", "settings/two-devices.pickle.gz"} {
		dir := recordingForms(t, snapshot)
		for _, c := range ofTraces {
			if snapshot != "snapshots/oom.pickle.gz" && (c.name == "gmbench tune" || c.name == "gmbench report") { // slow, and read by the same code
				continue
			}
			t.Run(filepath.Base(snapshot)+" "+c.command, func(t *testing.T) {
				t.Parallel()
				want := outcome(t, dir+"/trace", c.command)
				if !strings.HasSuffix(want, "status 0\n") {
					t.Errorf("of the trace:\n%s", want)
				}
				for _, form := range []string{"zipped", "plain"} {
					if got := outcome(t, dir+"/"+form, c.command); got != want {
						t.Errorf("%s: it prints\n%s\nof the trace\n%s", form, got, want)
					}
				}
			})
		}
	}
}

// recordingForms makes a folder with a snapshot in several forms, each in a folder of its own under the same name: the content alone
// differs.
func recordingForms(t *testing.T, snapshot string) string {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command("sh", "-ec", `
		mkdir zipped plain trace
		cp "$IN" zipped/job
		gunzip <"$IN" >plain/job
		gmtrace import -o trace/job zipped/job`)
	root, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	c.Dir, c.Env = dir, append(os.Environ(), "IN="+filepath.Join(root, snapshot))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// outcome returns what a command prints of the file job in a folder, without measured times.
func outcome(t *testing.T, folder, command string) string {
	env := append(os.Environ(), "T="+filepath.Join(folder, "job"))
	text := measuredTimes.ReplaceAllString(runIn(t, env, command), "TIME")
	return spaces.ReplaceAllString(strings.ReplaceAll(text, folder, ""), " ")
}

// measuredTimes are those of the solvers and of the clock on the wall.
var measuredTimes = regexp.MustCompile(`solver +.*|"seconds": .*`)

// TestPipedRecordings reads snapshots from a pipe and from a redirected file.
func TestPipedRecordings(t *testing.T) {
	dependOnSources(t)
	dir := recordingForms(t, "snapshots/oom.pickle.gz")
	for _, c := range []struct{ command, want string }{
		{"gmtrace show", "pytorch snapshot standard input"},
		{"gmtrace diff - $T/plain/job", "no group of allocations changed"},
		{"gmtrace export --format csv", "(?m)^[0-9]+,alloc,1,"},
		{"gmplan | gmplan show", "peak +1.96 GiB"},
		{"gmbench --alloc torch", "(?m)^pytorch snapshot standard input: 304 requests"},
		{"gmbench --why --alloc torch", "large fragments"},
		{"gmbench verify --limit 2GiB", "identical"},
		{"gmstitch replay --device sim --alloc stitch", "304 requests"},
	} {
		for _, how := range []string{"cat $T/zipped/job | ", "cat $T/plain/job | ", "<$T/zipped/job ", "cat $T/trace/job | gzip | "} {
			got := runIn(t, append(os.Environ(), "T="+dir), how+c.command)
			want := c.want
			if strings.Contains(how, "trace/job") {
				want = strings.Replace(want, "standard input", "job", 1)
			}
			if !regexp.MustCompile(want).MatchString(got) || !strings.HasSuffix(got, "status 0\n") {
				t.Errorf("%s%s: it prints\n%s\nwant %s", how, c.command, got, want)
			}
		}
	}
}

// takeTraces returns the commands of the tools whose help names a trace, or a recording, among what they take.
func takeTraces(t *testing.T) []string {
	t.Helper()
	takes := regexp.MustCompile(`(?m)^ +\[?<(?:trace|trace\|plan|a)>.*`)
	command := regexp.MustCompile(`(?m)^  ([\w-]+)(?: |$)`)
	var all []string
	for _, tool := range []string{"gmtrace", "gmplan", "gmbench", "gmstitch", "gmswap"} {
		help, err := exec.Command(tool, "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(string(help), "\nCommands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range command.FindAllStringSubmatch(list, -1) {
			help, err := exec.Command(tool, m[1], "--help").Output()
			if err != nil {
				t.Fatalf("%s %s --help: %v", tool, m[1], err)
			}
			if takes.Match(help) {
				all = append(all, tool+" "+m[1])
			}
		}
	}
	return all
}
