package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137, "kill -TERM $$": 143} {
		r, err := Run(exec.Command("sh", "-c", script), 0, nil)
		if err != nil || r.Status != want {
			t.Errorf("%q: %+v, %v; want %d", script, r, err, want)
		}
	}
}

func TestPoll(t *testing.T) {
	n := 0
	if _, err := Run(exec.Command("sleep", "0.3"), 10*time.Millisecond, func() { n++ }); err != nil || n == 0 {
		t.Errorf("polled %d times, %v", n, err)
	}
}

// TestSignals passes on what this process is sent.
func TestSignals(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command("sh", "-c", "trap 'exit 9' USR1; : > "+ready+"; while :; do sleep 0.01; done")
	sent := false
	r, err := Run(cmd, 10*time.Millisecond, func() {
		if _, err := os.Stat(ready); err == nil && !sent {
			sent = true
			_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		}
	})
	if err != nil || r.Status != 9 || r.Interrupted {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestStartError(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, want string
		status     int
	}{
		{"", "run: the name of the program is empty", 126},
		{"nosuchprogram", "no such program in $PATH", 127},
		{write("plain", "x", 0o644), "permission denied", 126},
		{write("text", "x", 0o755), "neither a program nor a script", 126},
		{write("script", "#!/nosuch\n", 0o755), "the interpreter that it names is not there", 127},
		{dir, "permission denied", 126},
	} {
		_, err := Run(exec.Command(c.name), 0, nil)
		failed := (*StartError)(nil)
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.want) || failed.Status() != c.status {
			t.Errorf("%q: %v", c.name, err)
		}
	}
}

// What a tool that was killed left behind goes when the next one starts, and nothing else does.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	alive, err := MakeFolder(parent, "gmtool-", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Remove()
	killed, err := MakeFolder(parent, "gmtool-", nil)
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command("sleep", "60")
	program.Env = []string{"LD_PRELOAD_OF_OLD=" + killed.Path + "/lib.so"}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	killed.lock.Close() // as the system does
	sweep(parent, "gmtool-", nil)
	if _, err := os.Stat(killed.Path); err != nil {
		t.Errorf("the folder of a program that still runs is gone: %v", err)
	}
	_ = program.Process.Kill()
	_ = program.Wait()
	beginning := filepath.Join(parent, "gmtool-new")
	for _, other := range []string{beginning, filepath.Join(parent, "other")} {
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir() // a link is no folder that a tool has made
	if err := errors.Join(os.WriteFile(filepath.Join(elsewhere, "lock"), nil, 0o600), os.Symlink(elsewhere, filepath.Join(parent, "gmtool-link"))); err != nil {
		t.Fatal(err)
	}
	foreign := os.Geteuid() == 0
	if dir := filepath.Join(parent, "gmtool-foreign"); foreign {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600), os.Chown(dir, 12, 34)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(parent, "gmtool-", func(folder string) bool { return folder == killed.Path })
	if _, err := os.Stat(killed.Path); err != nil {
		t.Errorf("a folder that is to be kept is gone: %v", err)
	}
	sweep(parent, "gmtool-", nil)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.Path); err == nil || len(left) != 4 && !foreign || len(left) != 5 && foreign {
		t.Errorf("left are %q, want those of the living and of others", left)
	}
}

// A program has the descriptors that it would have without the tool.
func TestNoDescriptors(t *testing.T) {
	list := func() string {
		out, err := exec.Command("sh", "-c", "ls /proc/$$/fd").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	before := list()
	f, err := MakeFolder(t.TempDir(), "gmtool-", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Remove()
	if with := list(); with != before {
		t.Errorf("descriptors of a program\n%swithout the folder\n%s", with, before)
	}
	if _, err := OpenFolder(f.Path); !errors.Is(err, ErrLocked) {
		t.Errorf("the folder of a process that lives: %v", err)
	}
}

func TestTempDir(t *testing.T) {
	for dir, want := range map[string]string{"": "/tmp", "/var/tmp": "/var/tmp", "/a b": "/tmp", "/a:b": "/tmp", "/$LIB": "/tmp", "a": "/tmp"} {
		t.Setenv("TMPDIR", dir)
		if got := TempDir(); got != want {
			t.Errorf("TMPDIR=%q: %q, want %q", dir, got, want)
		}
	}
}

func TestEnviron(t *testing.T) {
	e := Environ{"A=1", "P=/outer/x:/mine:", "A=2"}
	e.Prepend("P", "/new", ":", "/outer")
	e.Prepend("Q", "/new", ":", "")
	e.Set("B", "3")
	for name, want := range map[string]string{"A": "2", "B": "3", "C": "", "P": "/new:/mine", "Q": "/new"} {
		if got := e.Get(name); got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
}
