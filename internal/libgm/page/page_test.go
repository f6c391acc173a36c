package page

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// TestMain is another process, too, which makes its page and waits.
func TestMain(m *testing.M) {
	if dir := os.Getenv("GM_TEST_PAGE"); dir != "" {
		p, remove, err := Create(dir)
		if err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		p.Devices[3].Total = 1000
		p.Devices[3].Account.Allocation[Large].Add(7)
		os.Stdout.WriteString("made")
		os.Stdin.Read(make([]byte, 1))
		remove()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// other starts a process with a page; the function that is returned ends it.
func other(t *testing.T, dir string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GM_TEST_PAGE="+dir)
	return start(t, cmd)
}

func start(t *testing.T, cmd *exec.Cmd) (pid int, end func()) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); errors.Is(err, fs.ErrPermission) {
		t.Skip("no containers here: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	if n, _ := out.Read(text); string(text[:n]) != "made" {
		t.Fatalf("the other process says %q", text[:n])
	}
	return cmd.Process.Pid, func() {
		in.Close()
		cmd.Wait()
	}
}

func TestRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pages")
	t.Setenv("GM_DIR", dir)
	if pids, err := List(); len(pids) > 0 || err != nil {
		t.Errorf("with no folder: %v, %v", pids, err)
	}
	pid, end := other(t, dir)
	if pids, err := List(); err != nil || len(pids) != 1 || pids[0] != pid {
		t.Errorf("processes %v, %v", pids, err)
	}
	s, err := Read(pid)
	if err != nil {
		t.Fatal(err)
	}
	want := Counter{Current: 7, Peak: 7, Allocated: 7}
	if len(s.Devices) != 1 || s.Devices[3].Allocation[Large] != want || s.Totals[3] != 1000 {
		t.Errorf("stats %+v", s)
	}
	end()
	if _, err := Read(pid); !errors.Is(err, ErrNone) {
		t.Errorf("of a process that has ended: %v", err)
	}
	if pids, err := List(); len(pids) > 0 || err != nil {
		t.Errorf("after its end: %v, %v", pids, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("its page is left: %v", entries)
	}
}

// TestContainers has processes of the same id in containers that share the folder, each with a page of its own, which is shown where
// the process is seen, and which nobody else removes.
func TestContainers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GM_DIR", dir)
	var pids []int
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "GM_TEST_PAGE="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		}
		pid, end := start(t, cmd) // the second one looks at the page of the first
		defer end()
		pids = append(pids, pid)
	}
	if pages, err := filepath.Glob(filepath.Join(dir, "1.*")); err != nil || len(pages) != 2 {
		t.Errorf("pages %q, %v", pages, err)
	}
	slices.Sort(pids)
	if got, err := List(); err != nil || !slices.Equal(got, pids) {
		t.Errorf("processes %v, %v; want %v", got, err, pids)
	}
	if s, err := Read(pids[1]); err != nil || s.PID != pids[1] || s.Totals[3] != 1000 {
		t.Errorf("stats %+v, %v", s, err)
	}
}

// TestKilled has a process remove what one that was killed has left.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	pid, end := other(t, dir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	end()
	_, end = other(t, dir)
	defer end()
	if pages, err := os.ReadDir(dir); err != nil || len(pages) != 1 {
		t.Errorf("pages %v, %v", pages, err)
	}
}

// TestForeign leaves files alone that are no pages, and says what is wrong with those that are not whole.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GM_DIR", dir)
	files := map[string]string{strconv.Itoa(os.Getpid()): "notes", "1": "", "-5": "x", "list.txt": "y"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pids, err := List(); len(pids) > 0 || err != nil {
		t.Errorf("processes %v, %v", pids, err)
	}
	for name := range files {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	if _, err := Read(os.Getpid()); !errors.Is(err, ErrNone) {
		t.Errorf("a file that is no page: %v", err)
	}
	pid, end := other(t, dir)
	defer end()
	pages, err := filepath.Glob(filepath.Join(dir, strconv.Itoa(pid)+".*"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	if err := os.Truncate(pages[0], 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(pid); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a page that is cut off: %v", err)
	}
}

// TestWhole reads an account while it changes.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	p, remove, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	d := &p.Devices[2]
	d.Total = 1
	var stop atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			atomic.AddUint64(&d.Version, 1)
			words := unsafe.Slice((*int64)(unsafe.Pointer(&d.Account)), unsafe.Sizeof(d.Account)/8)
			for i := range words {
				atomic.AddInt64(&words[i], 1)
			}
			atomic.AddUint64(&d.Version, 1)
			time.Sleep(time.Microsecond)
		}
	})
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	file, err := os.Open(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for range 2000 {
		s, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		if a := s.Devices[2]; a.Allocation[All].Current != a.DriverNS {
			t.Errorf("torn: %d and %d", a.Allocation[All].Current, a.DriverNS)
		}
	}
	stop.Store(true)
	group.Wait()
}

// TestCut reads a page that is cut off and made whole again all the time: each time there is an account or an error, and never a signal.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GM_DIR", dir)
	pid, end := other(t, dir)
	defer end()
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	whole, err := os.ReadFile(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(pages[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var stop atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			file.Truncate(100)
			file.WriteAt(whole, 0)
		}
	})
	var read, failed int
	for began := time.Now(); (read == 0 || failed == 0) && time.Since(began) < time.Minute; {
		if _, err := Read(pid); err == nil {
			read++
		} else if failed++; !strings.Contains(err.Error(), "it is cut off") {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	group.Wait()
	if read == 0 || failed == 0 {
		t.Errorf("read %d times, and %d times not", read, failed)
	}
}

// TestOthers refuses folders and pages that are not this user's, for reading and for writing.
func TestOthers(t *testing.T) {
	base := t.TempDir()
	make := func(name string, mode os.FileMode) string {
		dir := filepath.Join(base, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	own, open := make("own", 0o755), make("open", 0o777)
	link, file := filepath.Join(base, "link"), filepath.Join(base, "file")
	if err := errors.Join(os.Symlink("own", link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{link: "is no folder but a file or a link", open: "everybody may write to", file: ""}
	if os.Geteuid() == 0 {
		foreign := make("foreign", 0o755)
		if err := os.Chown(foreign, 12, 34); err != nil {
			t.Fatal(err)
		}
		refused[foreign] = "belongs to another user"
	}
	for dir, want := range refused {
		t.Setenv("GM_DIR", dir)
		if _, err := List(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "GM_DIR can name another") {
			t.Errorf("list %s: %v", dir, err)
		}
		if _, err := Read(1); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("read %s: %v", dir, err)
		}
		if _, _, err := Create(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("create in %s: %v", dir, err)
		}
	}
	t.Setenv("GM_DIR", own)
	pid, end := other(t, own)
	defer end()
	pages, err := filepath.Glob(filepath.Join(own, "*"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	if err := os.Symlink(pages[0], filepath.Join(own, "1.1")); err != nil {
		t.Fatal(err)
	}
	if pids, err := List(); err != nil || !slices.Equal(pids, []int{pid}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chown(pages[0], 12, 34); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(pid); !errors.Is(err, ErrNone) {
		t.Errorf("a page of another user: %v", err)
	}
}

// TestNoRoom takes the room of a page before it is mapped: there is none on /dev/full's like, a folder in memory that is full.
func TestNoRoom(t *testing.T) {
	file, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	if _, err := fill(int(file.Fd()), 1); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("the error is %v", err)
	}
}
