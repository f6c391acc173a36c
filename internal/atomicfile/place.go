package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// place is the place of a file to write.
type place struct {
	path       string      // final links followed
	replaced   os.FileInfo // nil if there is no such file yet
	inPlace    bool
	descriptor int // of this process, -1 for none
}

const linksMax = 40 // as in Linux

// find follows the links of a path, also to a file that does not exist yet.
func find(path string) (place, error) {
	if path == "" {
		return place{}, syscall.ENOENT
	}
	for range linksMax {
		dir, name := filepath.Split(path)
		if fd, ours, ok := descriptor(dir, name); ok && ours {
			return place{path: path, inPlace: true, descriptor: fd}, nil
		} else if ok {
			return place{path: path, inPlace: true, descriptor: -1}, nil
		}
		link, err := os.Readlink(path)
		if err != nil {
			return here(path)
		}
		if !filepath.IsAbs(link) {
			link = dir + link // not cleaned: .. is relative to the folder that a link leads to
		}
		path = link
	}
	return place{}, syscall.ELOOP
}

// here examines a path that is not a link.
func here(path string) (place, error) {
	p := place{path: path, descriptor: -1}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return p, err
	}
	p.replaced, p.inPlace = info, !info.Mode().IsRegular()
	return p, nil
}

// descriptor returns the descriptor that a name in a folder stands for, such as /proc/self/fd/1, and whether it is one of this process. The
// target of such a link is not a path at which a file can be made.
func descriptor(dir, name string) (fd int, ours, ok bool) {
	fd, err := strconv.Atoi(name)
	if err != nil || dir == "" {
		return 0, false, false
	}
	folder, err := filepath.EvalSymlinks(dir)
	if err != nil || !strings.HasPrefix(folder, "/proc/") || filepath.Base(folder) != "fd" {
		return 0, false, false
	}
	own, err := filepath.EvalSymlinks("/proc/self/fd")
	return fd, err == nil && folder == own, true
}

// open opens a file that is written directly.
func (p *place) open() (*os.File, error) {
	if p.descriptor < 0 {
		return os.OpenFile(p.path, os.O_WRONLY|os.O_TRUNC, 0)
	}
	fd, err := unix.FcntlInt(uintptr(p.descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), p.path), nil
}

// check returns an error if the place cannot be written to.
func (p *place) check() error {
	switch {
	case p.descriptor >= 0:
		_, err := unix.FcntlInt(uintptr(p.descriptor), unix.F_GETFD, 0)
		return err
	case p.replaced != nil && p.replaced.IsDir():
		return syscall.EISDIR
	case p.inPlace:
		return allowed(p.path, unix.W_OK)
	}
	if p.replaced != nil {
		if err := allowed(p.path, unix.W_OK); err != nil {
			return err
		}
	}
	folder := p.folder()
	if err := allowed(folder, unix.W_OK|unix.X_OK); errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("cannot create a file in %s: %w", folder, err)
	} else if err != nil {
		return err
	}
	return nil
}

func allowed(path string, how uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, path, how, unix.AT_EACCESS)
}

// folder returns the folder of the path, ending in a slash.
func (p *place) folder() string {
	dir, _ := filepath.Split(p.path)
	if dir == "" {
		return "./"
	}
	return dir
}

// makeBeside creates a temporary file in the folder of the path, locked while this process lives. It first removes temporary files that
// ended processes left there.
func (p *place) makeBeside() (*os.File, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	folder := p.folder()
	sweep(folder)
	mode := os.FileMode(0o666)
	if p.replaced != nil {
		mode = 0o600 // until takeOver sets owner and mode
	}
	name := fmt.Sprintf("%s%s%d-%d", folder, prefix, os.Getpid(), time.Now().UnixNano())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // without locks sweep removes nothing
	if p.replaced != nil {
		if err := takeOver(f, p.replaced); err != nil {
			f.Close()
			return nil, errors.Join(err, os.Remove(name))
		}
	}
	return f, nil
}

// takeOver gives a file the mode of another and, as far as allowed, its owner. If the group cannot be set, the file's group gets no more
// rights than everybody.
func takeOver(f *os.File, other os.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := other.Mode().Perm()
	from, to := owner(info), owner(other)
	if *from != *to {
		_ = f.Chown(to.uid, -1)
		if f.Chown(-1, to.gid) != nil {
			mode &= ^os.FileMode(0o070) | mode<<3
		}
	}
	return f.Chmod(mode)
}

type ids struct{ uid, gid int }

func owner(info os.FileInfo) *ids {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return &ids{int(s.Uid), int(s.Gid)}
	}
	return &ids{-1, -1}
}
