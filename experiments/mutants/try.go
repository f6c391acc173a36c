package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// testCase is a test of a test binary.
type testCase struct {
	binary, dir string // dir: the folder of its package, in which it runs
	own         bool   // a test of the package that is changed
	name        string
	took        time.Duration
	reached     []byte // by the number of a change; 1: executed
}

// try runs the tests of packages, the changed one first, for each change. It calls survived for each change that no test noticed.
func (m *mutated) try(tests []string, survived func(mutant)) (c count, err error) {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(folder)
	cases, err := m.cases(folder, tests)
	if err != nil {
		return c, err
	}
	c.tried = len(m.mutants)
	var (
		wait  sync.WaitGroup
		mutex sync.Mutex
		queue = make(chan mutant)
	)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for x := range queue {
				reached, killed := notice(cases, x.number)
				mutex.Lock()
				if killed {
					c.killed++
				} else {
					survived(x)
				}
				if !reached {
					c.unreached++
				}
				mutex.Unlock()
			}
		})
	}
	for _, x := range m.mutants {
		queue <- x
	}
	close(queue)
	wait.Wait()
	return c, nil
}

// cases compiles the tests of packages and finds out which changes each test executes.
func (m *mutated) cases(folder string, tests []string) ([]testCase, error) {
	overlay, err := m.overlay(folder)
	if err != nil {
		return nil, err
	}
	var cases []testCase
	for i, dir := range tests {
		binary := filepath.Join(folder, fmt.Sprintf("test%d", i))
		if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+dir).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the tests of %s: %w\n%s", dir, err, out)
		}
		if _, err := os.Stat(binary); err != nil {
			continue // no tests
		}
		list := exec.Command(binary, "-test.list", "^(Test|Example|Fuzz)")
		list.Dir = dir
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("list the tests of %s: %w", dir, err)
		}
		for _, name := range strings.Fields(string(out)) {
			t := testCase{binary: binary, dir: dir, own: i == 0, name: name}
			if err := t.reach(filepath.Join(folder, "reached"), m.found); err != nil {
				return nil, err
			}
			cases = append(cases, t)
		}
	}
	slices.SortStableFunc(cases, func(a, b testCase) int { return cmp.Compare(a.took, b.took) })
	return cases, nil
}

//go:embed chooser.txt
var chooser []byte

// overlay writes the changed files, and what chooses among the changes, and returns the name of the list for go build -overlay.
func (m *mutated) overlay(folder string) (string, error) {
	replace := map[string]string{}
	m.files[filepath.Join(m.dir, "gm_mutants.go")] = bytes.Replace(chooser, []byte("PACKAGE"), []byte(m.name), 1)
	for name, text := range m.files {
		there, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[there] = filepath.Join(folder, filepath.Base(name))
		if err := os.WriteFile(replace[there], text, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// reach runs a test with no change and notes which it executes. A test that fails is an error.
func (t *testCase) reach(file string, last int) error {
	if err := os.WriteFile(file, make([]byte, last+1), 0o600); err != nil {
		return err
	}
	began := time.Now()
	if err := run1(t.binary, t.dir, t.name, 10*time.Minute, "GM_MUTANTS_REACHED="+file); err != nil {
		return fmt.Errorf("test %s of %s without a change: %w", t.name, t.dir, err)
	}
	t.took = time.Since(began)
	var err error
	t.reached, err = os.ReadFile(file)
	return err
}

// notice tells whether a test executes a change, and whether one fails because of it: the package's own tests are asked first, quick ones first.
func notice(cases []testCase, number int) (reached, killed bool) {
	for _, own := range []bool{true, false} {
		for _, batch := range batches(cases, own, number) {
			reached = true
			var took time.Duration
			names := make([]string, len(batch))
			for i, t := range batch {
				names[i], took = t.name, took+t.took
			}
			if run1(batch[0].binary, batch[0].dir, strings.Join(names, "|"), 10*time.Second+10*took, fmt.Sprintf("GM_MUTANT=%d", number)) != nil {
				return true, true
			}
		}
	}
	return reached, false
}

// batches returns the tests that execute a change by binary: those that take less than a second in all together, then each by itself.
func batches(cases []testCase, own bool, number int) [][]testCase {
	quick := map[string][]testCase{}
	spent := map[string]time.Duration{}
	var result, slow [][]testCase
	for _, t := range cases {
		if t.own != own || t.reached[number] == 0 {
			continue
		}
		if spent[t.binary] += t.took; spent[t.binary] < time.Second {
			quick[t.binary] = append(quick[t.binary], t)
		} else {
			slow = append(slow, []testCase{t})
		}
	}
	for _, batch := range quick {
		result = append(result, batch)
	}
	return append(result, slow...)
}

// addresses is the address space that a test may take, in KiB: a change may lead to a loop that allocates.
const addresses = 8 << 20

// unbounded are tests that need more addresses, whatever they run: sanitizers keep an account of all of them.
const unbounded = "Sanitize"

// run1 runs tests of a binary.
func run1(binary, dir, names string, limit time.Duration, env string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$@"`, addresses), "sh",
		binary, "-test.run", "^("+names+")$", "-test.skip", unbounded, "-test.failfast", "-test.short", "-test.timeout", limit.String())
	c.Dir, c.WaitDelay = dir, time.Second
	c.Env = append(os.Environ(), env, "GOMAXPROCS=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // with the programs that tests have started
	out, err := c.CombinedOutput()
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // those that outlive them
	}
	if err != nil && len(out) > 0 {
		return errors.Join(err, errors.New(string(out[:min(len(out), 2000)])))
	}
	return err
}
