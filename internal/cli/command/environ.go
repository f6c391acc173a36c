package command

import (
	"slices"
	"strings"
)

// Environ is the environment of a command: "name=value" each.
type Environ []string

// Get returns the value of a variable: the last one, if it is set several times.
func (e Environ) Get(name string) string {
	for _, text := range slices.Backward(e) {
		if value, ok := strings.CutPrefix(text, name+"="); ok {
			return value
		}
	}
	return ""
}

// Set adds or changes a variable.
func (e *Environ) Set(name, value string) { *e = append(*e, name+"="+value) }

// Prepend puts a file first in a variable that lists files, and removes those below outer, the folder of an enclosing run. An empty entry
// of PYTHONPATH stands for the current folder, and is kept.
func (e *Environ) Prepend(name, file, separator, outer string) {
	before := e.Get(name)
	for _, old := range strings.Split(before, separator) {
		here := old == "" && before != "" && name == "PYTHONPATH"
		if (old != "" || here) && (outer == "" || !strings.HasPrefix(old, outer+"/")) {
			file += separator + old
		}
	}
	e.Set(name, file)
}
