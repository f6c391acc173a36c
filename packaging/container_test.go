package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// read returns the text of a file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestContainerfile compares the images that a container is made of with go.mod and with each other.
func TestContainerfile(t *testing.T) {
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	text := read(t, "Containerfile")
	build := regexp.MustCompile(`(?m)^FROM docker\.io/library/golang:(.+)-(.+) AS build$`).FindStringSubmatch(text)
	run := regexp.MustCompile(`(?m)^FROM docker\.io/library/debian:(.+)-slim$`).FindStringSubmatch(text)
	if version == nil || build == nil || run == nil {
		t.Fatal(version, build, run)
	}
	if build[1] != version[1] {
		t.Errorf("it builds with Go %s, go.mod has %s", build[1], version[1])
	}
	if build[2] != run[1] {
		t.Errorf("it builds on Debian %s and runs on %s", build[2], run[1])
	}
}

// TestContainerIgnore compares what is not copied into a container with what git ignores. Patterns of .dockerignore begin at the top.
func TestContainerIgnore(t *testing.T) {
	var want []string
	for _, folder := range []string{"", "formats/interop/"} {
		for pattern := range strings.Lines(read(t, "../"+folder+".gitignore")) {
			pattern = strings.TrimSuffix(strings.TrimSpace(pattern), "/")
			if name, top := strings.CutPrefix(pattern, "/"); top || folder != "" {
				want = append(want, folder+name)
			} else {
				want = append(want, "**/"+pattern)
			}
		}
	}
	got := strings.Split(strings.TrimSpace(regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(read(t, "../.dockerignore"), "")), "\n")
	if !slices.Equal(got, want) {
		t.Errorf(".dockerignore has %q, want %q", got, want)
	}
}
