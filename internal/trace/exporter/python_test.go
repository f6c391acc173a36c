package exporter

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkSnapshot has Python load a snapshot and replay it, and compare its keys, segments and blocks with those of a real one,
// unless that is "".
func checkSnapshot(t *testing.T, data []byte, real string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"testdata/check.py"}
	if real != "" {
		args = append(args, "--like", real)
	}
	if out, err := exec.Command(python, append(args, path)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPython checks the snapshots of recordings. Those of imported snapshots must have the same keys and segments as the originals.
func TestPython(t *testing.T) {
	for name, load := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, warnings := load(t).written(t, Pickle)
			if len(warnings) > 0 {
				t.Errorf("warnings: %q", warnings)
			}
			real := ""
			if strings.HasPrefix(name, "snapshots/") {
				real = filepath.Join("../../../testdata", name)
			}
			checkSnapshot(t, out, real)
		})
	}
	t.Run("small", func(t *testing.T) {
		out, _ := small(t).written(t, Pickle)
		checkSnapshot(t, out, "")
	})
}

// TestPickler has Python read values of each kind.
func TestPickler(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	var b bytes.Buffer
	p := newPickler(bufio.NewWriter(&b))
	l := p.list()
	for _, n := range []int64{0, 255, 256, 65535, 65536, math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64, -1, math.MinInt32, math.MinInt32 - 1, math.MinInt64} {
		l.next()
		p.integer(n)
	}
	l.next()
	p.address(math.MaxUint64)
	for _, text := range []string{"", "é", "é", strings.Repeat("x", 256)} {
		l.next()
		p.text(text)
	}
	l.next()
	p.dict(func() {
		p.floatAt("f", 0.8)
		p.booleanAt("yes", true)
		p.booleanAt("no", false)
		p.pairAt("pair", 1, 2)
		p.listAt("none").end()
	})
	for range 3000 { // more than are appended at a time, and more texts than a short number counts
		l.next()
		p.text(strings.Repeat("y", l.batch))
	}
	l.end()
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	if err := p.out.Flush(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", "import pickle, sys; x = pickle.load(sys.stdin.buffer); print(x[:18], len(x), len(x[-1]))")
	cmd.Stdin, cmd.Stderr, cmd.Env = &b, os.Stderr, append(os.Environ(), "PYTHONIOENCODING=utf-8")
	out, err := cmd.Output()
	want := "[0, 255, 256, 65535, 65536, 2147483647, 2147483648, 9223372036854775807, -1, -2147483648, -2147483649, -9223372036854775808," +
		" 18446744073709551615, '', 'é', 'é', '" + strings.Repeat("x", 256) + "'," +
		" {'f': 0.8, 'yes': True, 'no': False, 'pair': (1, 2), 'none': []}] 3018 18\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
