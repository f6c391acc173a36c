// Package internal tests the layers: which packages of the module import which.
package internal

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// floors are the layers, the lowest first. A package belongs where the longest of these names that it begins with stands, and imports
// packages of its own name and of lower floors.
var floors = [][]string{
	{"internal/atomicfile", "internal/unnamed", "internal/bitset", "internal/gunzip", "internal/jsonvalue", "internal/version", "internal/units", "internal/glibc"},
	{"formats", "internal/cuda", "internal/nvml"},
	{"internal/torch", "internal/cli", "internal/report"},
	{"internal/blocks", "internal/dsa", "internal/order"},
	{"internal/trace", "internal/swap"},
	{"internal/plan", "internal/models", "internal/capture"},
	{"internal/bench", "internal/libgm"},
	{"tools", "experiments", "packaging"},
}

// notLinked is what a package does not import, nor any package that it imports. internal/libgm is loaded into the processes of users. A
// problem, a check or a file of dsa needs no solver: all solvers import internal/dsa/sections.
var notLinked = map[string][]string{
	"internal/libgm": {
		"formats/graph", "formats/plan", "formats/schedule", "internal/bench", "internal/capture", "internal/cli", "internal/dsa", "internal/models",
		"internal/nvml", "internal/order/solve", "internal/plan", "internal/report", "internal/swap/answer", "internal/swap/link", "internal/swap/papers", "internal/swap/partition/choose", "internal/swap/policy",
		"internal/swap/scheduling", "internal/swap/simulate", "internal/swap/store", "internal/trace",
	},
	"internal/dsa":            {"internal/dsa/sections"},
	"internal/dsa/instance":   {"internal/dsa/sections"},
	"internal/dsa/lp":         {"internal/dsa/sections"},
	"internal/models/layouts": {"internal/dsa/sections"},
	"internal/plan/check":     {"internal/dsa", "internal/order", "internal/plan/layout", "internal/plan/ordering"},
	"internal/swap/lifetimes": {"internal/dsa/sections"},
}

// onlyIn is where packages of others, unsafe and cgo may be imported, tests included.
var onlyIn = map[string][]string{
	"C": {"internal/cuda/driver", "internal/glibc", "internal/libgm"},
	"unsafe": {
		"internal/capture/ring", "internal/cuda/driver", "internal/libgm", "internal/swap/engine", "internal/swap/host", "internal/torch/pickle",
	},
	"github.com/NVIDIA/go-nvml":        {"internal/nvml"}, // its link flags hide undefined symbols
	"github.com/alecthomas/kong":       {"internal/cli", "tools"},
	"github.com/google/pprof":          {"internal/trace/profile", "tools"},
	"github.com/guptarohit/asciigraph": {"internal/trace/text"},
	"github.com/parquet-go/parquet-go": {"formats"},
	"go.yaml.in/yaml/v3":               {"packaging"},
	"gonum.org/v1/plot":                {"internal/report"},
}

// folder is the imports of a package, with those of the module named as its folders are.
type folder struct {
	imports []string
	tests   []string // of tests alone
}

// TestLayers holds all packages to the layers.
func TestLayers(t *testing.T) {
	packages := readImports(t, "..")
	if len(packages) < 50 {
		t.Fatalf("only %d packages were found: %q", len(packages), slices.Sorted(maps.Keys(packages)))
	}
	for _, v := range violations(packages) {
		t.Error(v)
	}
}

// TestLayersAreHeld adds an import of each kind that is refused, and looks for the refusal.
func TestLayersAreHeld(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"internal/blocks", "internal/bench", "internal/blocks imports internal/bench, of a higher floor"},
		{"internal/cuda/sim", "internal/blocks", "internal/cuda/sim imports internal/blocks, of a higher floor"},
		{"internal/blocks", "internal/dsa", "internal/blocks imports internal/dsa, of the same floor"},
		{"internal/swap/host", "internal/trace/tags", "internal/swap/host imports internal/trace/tags, of the same floor"},
		{"formats/trace", "tools/gmtrace", "formats/trace imports tools/gmtrace, of a higher floor"},
		{"internal/util", "formats/trace", "internal/util stands on no floor: name it in floors"},
		{"internal/swap", "internal/cli", "internal/libgm links internal/cli, which it must not"},
		{"internal/dsa", "internal/dsa/sections", "internal/dsa links internal/dsa/sections, which it must not"},
		{"internal/dsa", "unsafe", "internal/dsa imports unsafe, which only internal/capture/ring, "},
		{"internal/blocks", "C", "internal/blocks imports C, which only internal/cuda/driver, internal/glibc, internal/libgm may"},
		{"tools/gmbench", "gonum.org/v1/plot/vg", "tools/gmbench imports gonum.org/v1/plot/vg, which only internal/report may"},
	} {
		packages := map[string]*folder{
			"internal/libgm": {imports: []string{"internal/swap"}}, "internal/swap": {}, "internal/cli": {}, "internal/blocks": {}, "internal/dsa/sections": {},
		}
		if packages[test.from] == nil {
			packages[test.from] = &folder{}
		}
		if got := violations(packages); test.from != "internal/util" && len(got) > 0 {
			t.Fatalf("%s: %q", test.from, got)
		}
		packages[test.from].imports = append(packages[test.from].imports, test.to)
		got := violations(packages)
		if !slices.ContainsFunc(got, func(v string) bool { return strings.HasPrefix(v, test.want) }) {
			t.Errorf("%s imports %s: %q, want %q", test.from, test.to, got, test.want)
		}
	}
}

// readImports reads the imports of all packages below a folder, each by its folder's name.
func readImports(t *testing.T, root string) map[string]*folder {
	t.Helper()
	packages := map[string]*folder{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata" || entry.Name() == "node_modules" || entry.Name() == "out"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if packages[name] == nil {
			packages[name] = &folder{}
		}
		return packages[name].read(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func (f *folder) read(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if name = strings.TrimPrefix(name, "gm/"); strings.HasSuffix(path, "_test.go") {
			f.tests = append(f.tests, name)
		} else {
			f.imports = append(f.imports, name)
		}
	}
	return nil
}

// violations returns the imports that the layers do not allow, as sentences.
func violations(packages map[string]*folder) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		f := packages[name]
		group, floor := floorOf(name)
		if floor < 0 && len(f.imports) > 0 {
			report("%s stands on no floor: name it in floors", name)
			continue
		}
		for _, to := range slices.Compact(slices.Sorted(slices.Values(f.imports))) {
			switch other, below := floorOf(to); {
			case below < 0 || other == group:
			case below > floor:
				report("%s imports %s, of a higher floor", name, to)
			case below == floor:
				report("%s imports %s, of the same floor", name, to)
			}
		}
		for _, to := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(f.imports, f.tests)))) {
			for what, where := range onlyIn {
				if within(to, what) && !slices.ContainsFunc(where, func(w string) bool { return within(name, w) }) {
					report("%s imports %s, which only %s may", name, to, strings.Join(where, ", "))
				}
			}
		}
	}
	for name, not := range notLinked {
		for to := range linked(packages, name) {
			if slices.ContainsFunc(not, func(n string) bool { return within(to, n) }) {
				report("%s links %s, which it must not", name, to)
			}
		}
	}
	return found
}

// floorOf returns the floor of a package, and the name in floors that it stands there by; -1 for a package of others.
func floorOf(name string) (group string, floor int) {
	floor = -1
	for i, names := range floors {
		for _, n := range names {
			if within(name, n) && len(n) > len(group) {
				group, floor = n, i
			}
		}
	}
	return group, floor
}

// within says whether a package is in a folder.
func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// linked returns the packages of the module that a package imports, and those that they import.
func linked(packages map[string]*folder, name string) map[string]bool {
	all := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if packages[name] == nil {
			return
		}
		for _, to := range packages[name].imports {
			if packages[to] != nil && !all[to] {
				all[to] = true
				visit(to)
			}
		}
	}
	visit(name)
	return all
}
