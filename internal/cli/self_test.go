package cli

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	gm "gm/internal/version"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is now:\n%s", name, got)
	}
}

func testModel(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := kong.New(&testGrammar{}, kong.Name("test"), kong.Embed(&common{}))
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

func build(version string, settings ...string) *debug.BuildInfo {
	info := &debug.BuildInfo{Main: debug.Module{Version: version}}
	for i := 0; i < len(settings); i += 2 {
		info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
	}
	return info
}

func TestVersion(t *testing.T) {
	const commit = "a0b6c40d9e8f"
	for want, info := range map[string]*debug.BuildInfo{
		gm.Number:                          build("v1.2.3"),
		gm.Number + " (a0b6c40)":           build("(devel)", "vcs.revision", commit, "vcs.modified", "false"),
		gm.Number + " (a0b6c40, modified)": build("(devel)", "vcs.revision", commit, "vcs.modified", "true"),
	} {
		if got := version(info); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}

func TestManual(t *testing.T) {
	var out bytes.Buffer
	help := "Do things: all of them.\n\nThings:\n\nthis     what it is\n\nExample: test | sh -c 'it'\\n"
	info := build("v1.2.3", "vcs.time", "2026-01-02T03:04:05Z")
	if err := printManual(&out, testModel(t), help, info); err != nil {
		t.Fatal(err)
	}
	golden(t, "manual.1", strings.ReplaceAll(out.String(), gm.Number, "VERSION"))
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("there is no groff")
	}
	groff := exec.Command("groff", "-man", "-Tutf8", "-ww")
	groff.Stdin = &out
	var warnings bytes.Buffer
	groff.Stderr = &warnings
	if err := groff.Run(); err != nil || warnings.Len() > 0 {
		t.Errorf("groff: %v: %s", err, &warnings)
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range shells {
		var out bytes.Buffer
		if err := complete(&out, shell, testModel(t)); err != nil {
			t.Fatal(err)
		}
		file, script := shell, out.String()
		if shell == "zsh" { // which runs the script for bash
			file, script = "bash", strings.TrimPrefix(script, "autoload -U +X bashcompinit && bashcompinit\n")
		}
		golden(t, "completion."+file, script)
	}
}

// TestBashCompletes asks bash what it would offer for the last word.
func TestBashCompletes(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	var script bytes.Buffer
	if err := completeBash(&script, testModel(t)); err != nil {
		t.Fatal(err)
	}
	script.WriteString("COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _test; IFS=,; echo \"${COMPREPLY[*]}\"\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "my data"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"test ":                "do,completion,man,my data",
		"test do ":             "my data",
		"test d":               "do",
		"test m":               "man,my data",
		"test --m":             "--mode",
		"test do --":           "--help,--version,--fail,--mode,--into,--quiet",
		"test do --mode ":      "fast,slow",
		"test do --mode = s":   "slow",
		"test do --mode =":     "fast,slow",
		"test -m f":            "fast",
		"test do --fail ":      "",
		"test do --into ":      "my data",
		"test do --quiet ":     "my data",
		"test completion ":     "bash,zsh,fish",
		"test do completion f": "",
	} {
		bash := exec.Command("bash", append([]string{"-c", script.String(), "bash"}, strings.Split(line, " ")...)...)
		bash.Dir = dir
		got, err := bash.CombinedOutput()
		if strings.TrimSpace(string(got)) != want || err != nil {
			t.Errorf("%q: offers %q, %v, expected %q", line, got, err, want)
		}
	}
}
