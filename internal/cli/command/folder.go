package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const lockName = "lock"

// Folder is a private folder for the time of a run. It is locked while this process lives, so that a later run recognises the folder of a
// killed one.
type Folder struct {
	Path string
	lock *os.File
}

// TempDir returns the folder in which folders are made: os.TempDir, or /tmp if that name cannot stand in LD_PRELOAD or PYTHONPATH.
func TempDir() string {
	if dir := os.TempDir(); filepath.IsAbs(dir) && !strings.ContainsAny(dir, " :$") {
		return dir
	}
	return "/tmp"
}

// MakeFolder makes a folder whose name begins with a prefix. It first removes such folders of processes that have ended, except those for
// which keep, unless nil, returns true, and those that running programs have in their environment.
func MakeFolder(parent, prefix string, keep func(folder string) bool) (*Folder, error) {
	sweep(parent, prefix, keep)
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: path}
	if f.lock, err = os.OpenFile(filepath.Join(path, lockName+".new"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	err = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX)
	if err == nil { // renamed only now, the lock file is never seen unlocked
		err = os.Rename(f.lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

// ErrLocked means that the process that made a folder still runs.
var ErrLocked = errors.New("its process still runs")

// OpenFolder locks a folder of this user whose process has ended. A folder without a lock file counts as one.
func OpenFolder(path string) (*Folder, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.IsDir() || !ours(info) {
		return nil, fmt.Errorf("%s: not a folder of this user", path)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &Folder{Path: path}, nil
	} else if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(ErrLocked, lock.Close())
	}
	return &Folder{Path: path, lock: lock}, nil
}

// ours reports whether a file belongs to this user.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// Remove removes the folder and what is in it.
func (f *Folder) Remove() error {
	return errors.Join(os.RemoveAll(f.Path), f.Release())
}

// Release unlocks the folder without removing it.
func (f *Folder) Release() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}
