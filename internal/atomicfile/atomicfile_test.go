package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func text(words string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, words)
		return err
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	if err := os.Symlink("out", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, path, link} { // at first to what is not there yet
		if err := Write(name, text(name)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != name || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	failed := errors.New("failed")
	if err := Write(path, func(w io.Writer) error { return errors.Join(text("half")(w), failed) }); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadFile(path); string(got) != link || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 2 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestInPlace writes to what is no regular file, and stays so.
func TestInPlace(t *testing.T) {
	if err := Write(os.DevNull, text("nothing")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is a file now", os.DevNull)
	}
}

func TestNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "out")
	err := Write(path, text("words"))
	if err == nil || err.Error() != "write "+path+": no such file or directory" || strings.Contains(err.Error(), ".gm-") {
		t.Errorf("the error is %v", err)
	}
}

func contents(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); string(got) != want || err != nil {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

// TestLinks writes through links, to what is there and to what is not yet: the kernel's way, also for .. in the folder that a link
// leads to.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, folder := range []string{"deep/er", "other"} {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"first": "second", "second": "other/third", "other/third": "fourth", // to other/fourth
		"folder": "deep/er", "deep/er/up": "../folder-up", "away": "nosuch/file", "round": "about", "about": "round",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for name, lands := range map[string]string{"first": "other/fourth", "folder/up": "deep/folder-up", "folder/../plain": "deep/plain"} {
			if err := Write(name, text(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			contents(t, lands, name)
		}
	}
	for _, link := range []string{"first", "second", "other/third", "deep/er/up"} {
		if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("%s is no link any more", link)
		}
	}
	for name, want := range map[string]error{"away": syscall.ENOENT, "round": syscall.ELOOP, "": syscall.ENOENT, "other": syscall.EISDIR, "first/x": syscall.ENOTDIR} {
		if err := Write(name, text("x")); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
		if err := Check(name); !errors.Is(err, want) {
			t.Errorf("check %q: %v, want %v", name, err, want)
		}
	}
}

// TestDescriptors writes to open files, where they are, by the names that the system gives them.
func TestDescriptors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fmt.Sprintf("/dev/fd/%d", f.Fd()), link); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, name := range []string{fmt.Sprintf("/proc/self/fd/%d", f.Fd()), fmt.Sprintf("/dev/fd/%d", f.Fd()), fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()), link} {
		if err := errors.Join(Check(name), Write(name, text("a line\n"))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want += "a line\n"
		contents(t, path, want)
	}
	if err := os.Remove(path); err != nil { // a name such as "log (deleted)" is none
		t.Fatal(err)
	}
	if err := Write(link, text("more")); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("there are %v", entries)
	}
	if err := Check("/dev/fd/999"); !errors.Is(err, syscall.EBADF) {
		t.Errorf("of no descriptor: %v", err)
	}
}

// TestFIFO writes into a FIFO, which stays one.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		got, _ := os.ReadFile(path)
		read <- string(got)
	}()
	if err := errors.Join(Check(path), Write(path, text("through"))); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "through" {
		t.Errorf("read %q", got)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("it is no FIFO any more")
	}
}

// TestMode keeps the mode of what is replaced, which nobody may read more of meanwhile; a new file has that of any.
func TestMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	dir := t.TempDir()
	path := filepath.Join(dir, "new")
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if err := Write(path, text("x")); err != nil || mode(path) != 0o640 {
		t.Errorf("a new file: %v, %v", mode(path), err)
	}
	for _, want := range []os.FileMode{0o600, 0o666, 0o755, 0o620} {
		if err := os.Chmod(path, want); err != nil {
			t.Fatal(err)
		}
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := mode(f.Name()); got&^want != 0 {
			t.Errorf("%v while it is written, of %v", got, want)
		}
		if err := f.Commit(); err != nil || mode(path) != want {
			t.Errorf("%v, %v; want %v", mode(path), err, want)
		}
	}
}

// TestOwner keeps the owner, where root writes.
func TestOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12, 34); err != nil {
		t.Skip("only root gives files to others: ", err)
	}
	if err := Write(path, text("x")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || *owner(info) != (ids{12, 34}) {
		t.Errorf("owner %v, %v", owner(info), err)
	}
}

// TestProtected leaves a file alone that is not to be written to. Root may.
func TestProtected(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to any")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("kept"), 0o400); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{Check(path), Write(path, text("x"))} {
		if err == nil || err.Error() != "write "+path+": permission denied" {
			t.Errorf("the error is %v", err)
		}
	}
	contents(t, path, "kept")
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	other := filepath.Join(dir, "other")
	want := fmt.Sprintf("write %s: cannot create a file in %s/: permission denied", other, dir)
	for _, err := range []error{Check(other), Write(other, text("x"))} {
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// TestSweep removes what killed processes left, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	alive, err := Create(filepath.Join(dir, "alive"))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Discard()
	const stamp = "1700000000000000000"
	for _, name := range []string{".gm-12-" + stamp, ".gm-13-" + stamp, ".gm-12-34", ".gm-x-" + stamp, ".gm-conf", "gm-12-" + stamp} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".gm-14-"+stamp), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, ".gm-15-"+stamp), 0o666); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * sweepAge)
	for _, e := range entries {
		if e.Name() == ".gm-13-"+stamp { // just begun
			continue
		}
		if err := os.Chtimes(filepath.Join(dir, e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("gm-12-"+stamp, filepath.Join(dir, ".gm-16-"+stamp)); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "out"), text("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".gm-12-"+stamp)); err == nil {
		t.Error("what was left is still there")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != len(entries)+1 { // without one, with a link and the output
		t.Errorf("there are %v, %v", left, err)
	}
	if err := alive.Commit(); err != nil {
		t.Errorf("one that is being written: %v", err)
	}
}
