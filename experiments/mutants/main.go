// Command mutants changes the code of packages in one small place at a time and counts the changes that their tests notice.
//
//	go run ./experiments/mutants [-n N] [-seed S] [-kinds CHOICES] PACKAGE[=TESTS,...]...
//
// The kinds of changes: "less" (< and <=, > and >=), "equal" (== and !=), "logic" (&& and ||), "branch" (a condition negated), "least" (min and max),
// "order" (the sign of a comparison by cmp.Compare) and "call" (a call whose result is not used is left out). The first six change choices. Left out are
// conditions about err, conditions of loops that count, and panics: tests notice those trivially or by another kind of test.
//
// The changes that survive are printed on stderr as they are found. All changes of a package are compiled into one test binary, which a variable of
// the environment chooses from. A change that no test executes is not run: it survives. TESTS are packages with more tests, run where the package's
// own do not notice.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	n := flag.Int("n", 0, "changes to try of each package, chosen at random; 0: all")
	seed := flag.Uint64("seed", 1, "seed of that choice")
	kinds := flag.String("kinds", strings.Join(choices, ","), "kinds of changes, by comma")
	flag.Parse()
	if err := run(flag.Args(), *n, *seed, strings.Split(*kinds, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(targets []string, n int, seed uint64, kinds []string) error {
	equivalent, err := readEquivalent("experiments/mutants/equivalent.txt")
	if err != nil {
		return err
	}
	fmt.Printf("%-28s %8s %7s %7s %9s %7s\n", "package", "changes", "tried", "killed", "not run", "share")
	var (
		all  count
		dirs []string
	)
	for _, target := range targets {
		dir, tests, _ := strings.Cut(target, "=")
		dirs = append(dirs, filepath.Clean(dir))
		m, err := mutate(dir, kinds)
		if err != nil {
			return err
		}
		m.mutants = slices.DeleteFunc(m.mutants, func(x mutant) bool { return equivalent.takes(x) })
		rng := rand.New(rand.NewPCG(seed, 0))
		rng.Shuffle(len(m.mutants), func(i, j int) { m.mutants[i], m.mutants[j] = m.mutants[j], m.mutants[i] })
		if n > 0 && n < len(m.mutants) {
			m.mutants = m.mutants[:n]
		}
		survived := func(x mutant) { fmt.Fprintln(os.Stderr, x) }
		c, err := m.try(append([]string{dir}, strings.FieldsFunc(tests, func(r rune) bool { return r == ',' })...), survived)
		if err != nil {
			return err
		}
		c.found = m.found
		c.print(dir)
		all.add(c)
	}
	all.print("all")
	return equivalent.stale(dirs, kinds)
}

// count is what came of the changes of a package.
type count struct {
	found, tried, killed, unreached int
}

func (c *count) add(d count) {
	c.found, c.tried, c.killed, c.unreached = c.found+d.found, c.tried+d.tried, c.killed+d.killed, c.unreached+d.unreached
}

func (c *count) print(name string) {
	fmt.Printf("%-28s %8d %7d %7d %9d %6.1f%%\n", name, c.found, c.tried, c.killed, c.unreached, 100*float64(c.killed)/float64(max(c.tried, 1)))
}
