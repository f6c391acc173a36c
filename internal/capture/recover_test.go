package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gm/formats/trace"
	"gm/internal/cli/command"
)

// recordVariable makes this test program a recorder, of the command in its arguments.
const recordVariable = "GM_CAPTURE_RECORD"

// record is the main function of a recorder, which waits to be killed.
func record(words []string) int {
	library, err := os.ReadFile(filepath.Join(os.Getenv("GM_CAPTURE_TEST"), shimName))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := NewSession(Options{Library: library, Warn: func(string, ...any) {}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := s.Run(words, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	time.Sleep(time.Minute)
	return 0
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("after a minute: no %s", what)
		}
	}
}

// killed runs a program under a recorder, and kills that when the folder is as it should be. It returns the folder. The program
// goes on until the file stop is there.
func killed(t *testing.T, ready func(folder string) bool, words ...string) (folder string) {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	c := exec.Command(os.Args[0], append([]string{filepath.Join(b.folder, words[0])}, words[1:]...)...)
	c.Env = append(append(os.Environ(), recordVariable+"=1", "TMPDIR="+temporary), b.libraries.Env("")...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "folder of a recorder", func() bool {
		folders, _ := filepath.Glob(filepath.Join(temporary, folderPrefix+"*"))
		if len(folders) != 1 {
			return false
		}
		folder = folders[0]
		return ready(folder)
	})
	_ = c.Process.Kill()
	_ = c.Wait()
	about, err := readSessionFile(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(about.Rings) })
	return folder
}

// recovered writes the traces of a folder, and reads them.
func recovered(t *testing.T, folder string) (traces []captive, warnings []string) {
	t.Helper()
	s, err := Recover(folder, func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) })
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := s.Recovered("%p")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		traces = append(traces, read(t, o))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return traces, warnings
}

// allocs counts the requests for memory in a trace.
func (c *captive) allocs() int {
	n := 0
	for _, e := range c.rows {
		if kind, _ := trace.ParseDriverTag(c.texts(e.Tag)); e.Op == trace.OpAlloc && kind == trace.KindMemory {
			n++
		}
	}
	return n
}

// What was recorded is recovered after the recorder was killed, be it in the ring or in the journal, while the program goes on or has ended.
func TestRecoverAfterKill(t *testing.T) {
	for _, c := range []struct{ name, way, kept string }{
		{"in the ring", "linked", "ring.*"},
		{"in the journal and the ring", "many", "journals/journal.*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stop := filepath.Join(t.TempDir(), "stop")
			folder := killed(t, func(folder string) bool {
				about, err := readSessionFile(folder)
				if err != nil {
					return false
				}
				inHome, _ := filepath.Glob(filepath.Join(folder, c.kept))
				inMemory, _ := filepath.Glob(filepath.Join(about.Rings, c.kept))
				return len(inHome)+len(inMemory) > 0
			}, "driver", c.way, "until", stop)
			traces, _ := recovered(t, folder)
			if len(traces) != 1 || traces[0].meta.Command == "" || !strings.HasPrefix(traces[0].meta.Source, "gmtrace run of driver") {
				t.Fatalf("%d traces while the program goes on", len(traces))
			}
			if !strings.Contains(traces[0].meta.Incomplete, "still runs") {
				t.Errorf("incomplete: %q", traces[0].meta.Incomplete)
			}
			pid := traces[0].output.PID
			life := newLife(pid)
			if c.way == "many" { // it waits for a reader
				_ = syscall.Kill(pid, syscall.SIGKILL)
			} else if err := os.WriteFile(stop, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			eventually(t, "end of the program", life.dead)
			_ = life.close()
			traces, warnings := recovered(t, folder)
			if n := traces[0].allocs(); c.way == "linked" && n != 23 || n < 23 {
				t.Errorf("%d requests, incomplete %q, warnings %q", n, traces[0].meta.Incomplete, warnings)
			}
			again, _ := recovered(t, folder)
			if !slices.Equal(again[0].rows, traces[0].rows) {
				t.Errorf("recovered twice: %d rows, %d rows", len(again[0].rows), len(traces[0].rows))
			}
		})
	}
}

// The folder of a recorder that was killed is left to Recover for a day, and then goes.
func TestRecoverableForADay(t *testing.T) {
	stop := filepath.Join(t.TempDir(), "stop")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := killed(t, func(folder string) bool {
		journals, _ := filepath.Glob(filepath.Join(folder, "journals/journal.*"))
		return len(journals) > 0
	}, "driver", "linked", "until", stop)
	temporary := filepath.Dir(folder)
	if got := Recoverable(temporary); !slices.Equal(got, []string{folder}) {
		t.Errorf("recoverable %q, want %q", got, folder)
	}
	sweep := func() {
		f, err := command.MakeFolder(temporary, folderPrefix, recoverable)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Remove(); err != nil {
			t.Error(err)
		}
	}
	if sweep(); !recoverable(folder) {
		t.Fatal("it is gone at once")
	}
	about, err := readSessionFile(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{folder + "/*/*", folder + "/*", about.Rings + "/*"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			if err := os.Chtimes(f, time.Time{}, time.Now().Add(-2*keptFor)); err != nil {
				t.Error(err)
			}
		}
	}
	eventually(t, "sweep of what is a day old", func() bool { // when the program has ended, too
		sweep()
		_, err := os.Stat(folder)
		return errors.Is(err, fs.ErrNotExist)
	})
}

func TestRecoverNothing(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(Options{Library: b.preload, Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(s.folder, t.Logf); err == nil || !strings.Contains(err.Error(), "still records") {
		t.Errorf("the folder of a session: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Recover(s.folder, t.Logf); err == nil {
		t.Error("a folder that is not there was recovered")
	}
	if _, err := Recover(t.TempDir(), t.Logf); err == nil {
		t.Error("an empty folder was recovered")
	}
}

// One thing that cannot be read keeps nothing else from being recorded, and is kept.
func TestOneOfMany(t *testing.T) {
	for name, harm := range map[string]string{
		"a ring that is none":   `echo junk > "$GMTRACE_RINGS/ring.77777777.77"`,
		"a folder":              `mkdir "$GMTRACE_RINGS/ring.77777777.77"`,
		"a pipe":                `mkfifo "$GMTRACE_RINGS/ring.77777777.77"`,
		"a dump that is none":   `echo junk > "$GMTRACE_DIR/history.77777777.0.pickle"`,
		"a dump that is a pipe": `mkfifo "$GMTRACE_DIR/history.77777777.0.pickle"`,
		"a greeting":            `echo junk > "$GMTRACE_DIR/torch.77777777.json"`,
		"marks that are a pipe": `mkfifo "$GMTRACE_DIR/marks.$$"`,
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := sessionOf(t)
			status, err := s.Run([]string{"sh", "-c", harm + "; $DRIVER linked; sleep 0.1; $DRIVER linked; exit 7"}, os.Stderr)
			if status != 7 || err != nil {
				t.Errorf("status %d, %v", status, err)
			}
			if harmless := strings.HasPrefix(name, "marks"); (s.Failed() == nil) != harmless {
				t.Errorf("failed: %v", s.Failed())
			}
			c := &captured{}
			outputs, err := s.Outputs("%p")
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range outputs {
				if p := read(t, o); p.meta.PID != 77777777 {
					c.traces = append(c.traces, p)
				}
			}
			if len(c.traces) != 2 || c.traces[0].allocs() != 23 || c.traces[1].allocs() != 23 || c.traces[0].meta.Incomplete != "" {
				t.Errorf("%d traces", len(c.traces))
			}
			checkKept(t, s, strings.Contains(name, "ring") || strings.Contains(name, "folder") || name == "a pipe" || name == "a greeting")
		})
	}
}

// sessionOf returns a session whose programs find the driver, and $DRIVER.
func sessionOf(t *testing.T) (s *Session, b *bench) {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(b.libraries.Env(""), "DRIVER="+filepath.Join(b.folder, "driver")) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	if s, err = NewSession(Options{Library: b.preload, Warn: t.Logf}); err != nil {
		t.Fatal(err)
	}
	return s, b
}

// checkKept closes a session and looks whether its folders are there, which it removes.
func checkKept(t *testing.T, s *Session, want bool) {
	t.Helper()
	if kept := s.Kept() != ""; kept != want {
		t.Errorf("kept: %q", s.Kept())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, folder := range []string{s.folder, s.rings} {
		if _, err := os.Stat(folder); (err == nil) != want {
			t.Errorf("%s: %v", folder, err)
		}
		os.RemoveAll(folder)
	}
}

// Where the journals cannot be written, all that the ring holds is in the trace, which says that more is missing; the program does not wait.
func TestFullDisk(t *testing.T) {
	for way, complete := range map[string]bool{"linked": true, "many": false} {
		t.Run(way, func(t *testing.T) {
			s, _ := sessionOf(t)
			if err := os.Remove(s.journals()); err != nil {
				t.Fatal(err)
			}
			status, err := s.Run([]string{"sh", "-c", "exec $DRIVER " + way}, os.Stderr)
			if status != 0 || err != nil {
				t.Fatalf("status %d, %v", status, err)
			}
			outputs, err := s.Outputs("%p")
			if err != nil || len(outputs) != 1 {
				t.Fatalf("%d traces, %v", len(outputs), err)
			}
			p := read(t, outputs[0])
			if complete != (p.meta.Incomplete == "") || complete != (s.Failed() == nil) {
				t.Errorf("incomplete %q, failed: %v", p.meta.Incomplete, s.Failed())
			}
			marked := slices.ContainsFunc(p.rows, func(e trace.Event) bool {
				return e.Op == trace.OpMark && strings.HasPrefix(p.texts(e.Tag), trace.IncompleteTag(""))
			})
			if marked == complete {
				t.Errorf("marked %v", marked)
			}
			if n := p.allocs(); complete && n != 23 || !complete && n < 20000 {
				t.Errorf("%d requests", n)
			}
			_ = s.Close() // what is pending cannot be written at the end either
		})
	}
}

// A trace that cannot be written to its end is made whole in the session's folder; without room there, all there is is left to Recover.
func TestOutputFails(t *testing.T) {
	s, _ := sessionOf(t)
	if _, err := s.Run([]string{"sh", "-c", "$DRIVER many; $DRIVER linked"}, os.Stderr); err != nil {
		t.Fatal(err)
	}
	outputs, err := s.Outputs("%p")
	if err != nil || len(outputs) != 2 {
		t.Fatalf("%d traces, %v", len(outputs), err)
	}
	for _, room := range []int{0, 100_000} {
		f, err := os.Create(filepath.Join(t.TempDir(), "trace"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		rows, err := outputs[0].Write(&fullDisk{f, room})
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), s.folder) {
			t.Fatalf("writing: %v", err)
		}
		names, _ := filepath.Glob(filepath.Join(s.folder, rescuedPrefix+"-*"))
		r, err := trace.Open(names[0])
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		if err := trace.Each(r, func(int64, *trace.Event) error { n++; return nil }); err != nil || n != rows || n < 80000 {
			t.Errorf("%d rows, told of %d, %v", n, rows, err)
		}
		if err := errors.Join(r.Close(), os.Remove(names[0])); err != nil {
			t.Error(err)
		}
	}
	s.Keep()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	traces, warnings := recovered(t, s.Kept())
	if len(traces) != 2 || traces[0].allocs() != 46000 || traces[1].allocs() != 23 {
		t.Errorf("%d traces; %q", len(traces), warnings)
	}
	os.RemoveAll(s.folder)
	os.RemoveAll(s.rings)
}

// fullDisk is a file on a disk that has room for some bytes.
type fullDisk struct {
	*os.File
	room int
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n, err := d.File.Write(b[:min(len(b), d.room)])
	d.room -= n
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

// Many processes are recorded with few descriptors.
func TestFewDescriptors(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 64
	s, _ := sessionOf(t)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	status, err := s.Run([]string{"sh", "-c", "for i in $(seq 100); do $DRIVER linked & done; wait"}, os.Stderr)
	outputs, failed := s.Outputs("%p")
	if err := errors.Join(err, failed, s.Failed(), syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)); err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
	if len(outputs) != 100 {
		t.Errorf("%d traces, want 100", len(outputs))
	}
	for _, o := range outputs {
		if p := read(t, o); p.allocs() != 23 {
			t.Errorf("process %d: %d requests", o.PID, p.allocs())
		}
	}
	checkKept(t, s, false)
}
