package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// equivalents are the changes that change nothing that the package promises, with the reason, by what they change.
type equivalents map[string]bool // whether it was found

// readEquivalent reads the list: lines "FILE: FUNCTION: KIND: TEXT", each below a line with # that says why.
func readEquivalent(name string) (equivalents, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the changes that change nothing: %w", err)
	}
	e := equivalents{}
	reason := false
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "":
			reason = false
		case strings.HasPrefix(line, "#"):
			reason = true
		case !reason:
			return nil, fmt.Errorf("read %s: line %d: no reason stands above it", name, i+1)
		case strings.Count(line, ": ") < 3:
			return nil, fmt.Errorf("read %s: line %d: expected FILE: FUNCTION: KIND: TEXT", name, i+1)
		default:
			e[line] = false
		}
	}
	return e, nil
}

func (e equivalents) takes(m mutant) bool {
	line := fmt.Sprintf("%s: %s: %s: %s", m.file, m.function, m.kind, m.text)
	if _, ok := e[line]; !ok {
		return false
	}
	e[line] = true
	return true
}

// stale returns an error if a line about a file of the folders, and of one of the kinds, was not found in it.
func (e equivalents) stale(dirs, kinds []string) error {
	for line, found := range e {
		parts := strings.SplitN(line, ": ", 4)
		if !found && slices.Contains(dirs, filepath.Dir(parts[0])) && slices.Contains(kinds, parts[2]) {
			return fmt.Errorf("equivalent.txt names a change that is not there: %s", line)
		}
	}
	return nil
}
