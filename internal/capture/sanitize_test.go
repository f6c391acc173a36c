package capture

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSanitizers links the preload library into the test program, under the sanitizers of the C compiler. They need dlsym before they
// are ready themselves, so the file that replaces it is left out of their view.
func TestSanitizers(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	resolve := filepath.Join(t.TempDir(), "resolve.o")
	if err := compile("-O1", "-c", "-o", resolve, "preload/resolve.c"); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("preload/*.c")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"testdata/driver.c", resolve}
	for _, s := range sources {
		if filepath.Base(s) != "resolve.c" {
			args = append(args, s)
		}
	}
	for _, sanitizer := range []string{"address,undefined", "thread"} {
		t.Run(sanitizer, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "driver")
			flags := []string{
				"-g", "-O1", "-fsanitize=" + sanitizer, "-fno-sanitize-recover=all", "-I" + b.libraries.Include, "-L" + b.folder, "-pthread", "-rdynamic",
				"-o", program,
			}
			if err := compile(append(append(flags, args...), "-lcuda")...); err != nil {
				t.Fatal(err)
			}
			ways := "linked dlsym address pools physical host others code refused children threads many"
			sanitized(t, b, program, strings.Fields(ways)...)
		})
	}
}

// sanitized runs a program that has the preload library within.
func sanitized(t *testing.T, b *bench, program string, ways ...string) {
	counts := filepath.Join(t.TempDir(), "counts")
	t.Setenv("GM_FAKE_COUNTS", counts)
	c := &captured{}
	s, err := NewSession(Options{Library: b.preload, Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := exec.Command(program, ways...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GMTRACE_DIR="+s.folder, "ASAN_OPTIONS=detect_leaks=0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err := <-ended:
			running = false
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(pollPeriod):
		}
		s.Poll()
	}
	c.gather(t, s, counts)
	c.check(t)
}
