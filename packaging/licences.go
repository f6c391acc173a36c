package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// linked are the packages whose dependencies are distributed with gm.
var linked = []string{"./tools/...", "./internal/libgm"}

// licences prints the licence of Go and of each module that the tools and libgm.so link, as the modules have them.
func licences(out io.Writer) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"}, linked...)...)
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return fmt.Errorf("list what is linked: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go: %w", err)
	}
	modules := slices.Sorted(strings.Lines(string(text)))
	if len(modules) == 0 {
		return errors.New("no module is linked")
	}
	modules = append(slices.Compact(modules), fmt.Sprintf("Go %s %s", runtime.Version(), root))
	for _, module := range modules {
		words := strings.Fields(module)
		if len(words) != 3 {
			continue // an empty line: a package of Go or of gm
		}
		if err := licence(out, words[0]+" "+words[1], words[2]); err != nil {
			return err
		}
	}
	return nil
}

// licence prints the licence files in a module's folder.
func licence(out io.Writer, name, folder string) error {
	var files []string
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "NOTICE*"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no licence in %s", name, folder)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n%s\n\n%s\n\n", name, strings.Repeat("=", len(name)), strings.TrimSpace(string(text))); err != nil {
			return err
		}
	}
	return nil
}
