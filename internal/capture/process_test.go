package capture

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

// TestLack warns of each thing that is missing once.
func TestLack(t *testing.T) {
	warned := 0
	p := newProcess(1, t.TempDir(), nil, func(string, ...any) { warned++ })
	for _, what := range []string{"a", "b", "a", "b", "c"} {
		p.lack("%s is missing", what)
	}
	if len(p.lacks) != 3 || warned != 3 || p.lacks[1].text != "b is missing" {
		t.Errorf("%v, %d warnings", p.lacks, warned)
	}
}

// TestNoDump has a dump that is not there end nothing, nor another failure take the place of the first.
func TestNoDump(t *testing.T) {
	missing, known := filepath.Join(t.TempDir(), "dump"), errors.New("as before")
	for _, failed := range []error{nil, known} {
		p := newProcess(1, t.TempDir(), nil, func(string, ...any) {})
		p.failed = failed
		if !p.takeDump(missing) || p.failed != failed || p.nextDump != 1 || len(p.lacks) != 0 {
			t.Errorf("%v: %v, %v", failed, p.failed, p.lacks)
		}
	}
	p := newProcess(1, t.TempDir(), nil, func(string, ...any) {})
	if !p.takeDump(t.TempDir()) || p.failed == nil || errors.Is(p.failed, fs.ErrNotExist) {
		t.Errorf("a folder is a dump: %v", p.failed)
	}
	first := p.failed
	if !p.takeDump(t.TempDir()) || p.failed != first {
		t.Errorf("%v, %v before", p.failed, first)
	}
}
