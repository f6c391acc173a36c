package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gm/internal/version"
)

var tools = []string{"gmtrace", "gmplan", "gmbench", "gmstitch", "gmswap"}

// made returns a package that make test-packages made.
func made(t *testing.T, pattern string) string {
	t.Helper()
	folder := os.Getenv("GM_PACKAGES")
	if folder == "" {
		t.Skip("run by make test-packages")
	}
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) == 0 {
		t.Skipf("%s was not made", pattern)
	}
	if len(found) > 1 {
		t.Fatalf("several: %q", found)
	}
	return found[0]
}

// command runs a command in an empty environment and returns its output.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// files returns the files below a folder, without it.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, strings.TrimPrefix(path, folder+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTarball unpacks the tarball and looks at each file, runs each tool, and links a program with libgm.so.
func TestTarball(t *testing.T) {
	t.Parallel()
	archive, dir := made(t, "gm-*.tar.gz"), t.TempDir()
	command(t, "tar", "-C", dir, "--strip-components=1", "-xf", archive)
	want := []string{"include/gm.h", "lib/libgm.so", "share/doc/gm/third-party.txt"}
	for _, name := range documents(t) {
		want = append(want, "share/doc/gm/"+name)
	}
	for _, tool := range tools {
		want = append(want, "bin/"+tool, "share/man/man1/"+tool+".1", "share/bash-completion/completions/"+tool,
			"share/fish/vendor_completions.d/"+tool+".fish", "share/zsh/site-functions/_"+tool)
		if got := command(t, filepath.Join(dir, "bin", tool), "--version"); !strings.HasPrefix(got, tool+" "+version.Number) {
			t.Errorf("%s --version: %s", tool, got)
		}
		command(t, "bash", "-n", filepath.Join(dir, "share/bash-completion/completions", tool))
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(files(t, dir))); !slices.Equal(got, want) {
		t.Errorf("it has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range []string{"bin/gmtrace", "bin/gmplan", "bin/gmbench", "bin/gmstitch", "bin/gmswap", "lib/libgm.so"} {
		if got, err := needs(filepath.Join(dir, name)); err != nil || got.newer(oldest) {
			t.Errorf("%s needs glibc %v, not %v: %v", name, got, oldest, err)
		}
	}
	linkLibrary(t, dir)
	checkLinks(t, filepath.Join(dir, "share/doc/gm"))
	text, err := os.ReadFile(filepath.Join(dir, "share/doc/gm/third-party.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"github.com/parquet-go/parquet-go v", "github.com/NVIDIA/go-nvml v", "Go go1."} {
		if !strings.Contains(string(text), module) {
			t.Errorf("no licence of %s", module)
		}
	}
}

// documents returns the names of the documents that are installed.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{
		"README.md", "CHANGELOG.md", "LICENSE", "formats/README.md", "docs/*.md", "docs/*.png", "docs/examples/*", "packaging/slurm/*.sh", "packaging/kubernetes/*.yaml",
	} {
		found, err := filepath.Glob("../" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, name := range found {
			all = append(all, strings.TrimPrefix(name, "../"))
		}
	}
	return all
}

// inSources are the documents and folders of the sources alone.
var inSources = regexp.MustCompile(`^(ARCHITECTURE|CONTRIBUTING)\.md$|^\.\./(experiments|internal|testdata)/|^experiments/`)

// checkLinks looks whether the links of documents lead to what is installed, but for those into the sources.
func checkLinks(t *testing.T, folder string) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)`)
	for _, name := range documents(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		}
		for _, target := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(target[1], "://") || inSources.MatchString(target[1]) {
				continue
			}
			if _, err := os.Stat(filepath.Join(folder, filepath.Dir(name), target[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// linkLibrary compiles and runs a program with the installed header and library.
func linkLibrary(t *testing.T, dir string) {
	source, program := filepath.Join(t.TempDir(), "version.c"), filepath.Join(t.TempDir(), "version")
	if err := os.WriteFile(source, []byte("#include <gm.h>\n#include <stdio.h>\nint main(void) { return puts(gm_version()) < 0; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	command(t, "gcc", "-o", program, source, "-I"+dir+"/include", "-L"+dir+"/lib", "-lgm", "-Wl,-rpath,"+dir+"/lib")
	if got := command(t, program); got != version.Number+"\n" {
		t.Errorf("gm_version() is %s", got)
	}
}

// TestDeb unpacks the Debian package and runs its tools; its description must name the libraries that they need.
func TestDeb(t *testing.T) {
	t.Parallel()
	file, dir := made(t, "gm_*.deb"), t.TempDir()
	command(t, "dpkg-deb", "-x", file, dir)
	for _, tool := range tools {
		if got := command(t, filepath.Join(dir, "usr/bin", tool), "--version"); !strings.HasPrefix(got, tool+" "+version.Number) {
			t.Errorf("%s --version: %s", tool, got)
		}
	}
	fields := command(t, "dpkg-deb", "--field", file)
	for _, line := range []string{"Package: gm\n", "Version: " + version.Number + "-1\n", "Depends: libc6 (>= " + oldest.String() + "), libgcc-s1\n", "Maintainer: gm developers <"} {
		if !strings.Contains(fields, line) {
			t.Errorf("no line %q in\n%s", line, fields)
		}
	}
	for _, name := range []string{"copyright", "changelog.gz", "changelog.Debian.gz", "third-party.txt.gz", "docs/gmtrace.md", "formats/README.md"} {
		if _, err := os.Stat(filepath.Join(dir, "usr/share/doc/gm", name)); err != nil {
			t.Error(err)
		}
	}
	// The maintainer's address has one.
	if strings.Count(fields, "@") > 1 {
		t.Errorf("a field was not filled in:\n%s", fields)
	}
}
