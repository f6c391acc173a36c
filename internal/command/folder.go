package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// Folder is a folder of this user for the time of a run. It is locked as long as this process or one of the programs that it starts
// lives, so that others can tell what one that was killed has left behind.
type Folder struct {
	Path string
	lock *os.File
}

// TempDir is the folder to make others in: os.TempDir, or /tmp where that has a name that cannot stand in LD_PRELOAD or PYTHONPATH.
func TempDir() string {
	if dir := os.TempDir(); filepath.IsAbs(dir) && !strings.ContainsAny(dir, " :$") {
		return dir
	}
	return "/tmp"
}

// MakeFolder makes a folder whose name begins with a prefix, and removes those of processes that are no more.
func MakeFolder(parent, prefix string) (*Folder, error) {
	sweep(parent, prefix)
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: path}
	if f.lock, err = os.OpenFile(filepath.Join(path, lockName+".new"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	err = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX)
	if err == nil { // programs inherit the lock: they need the folder also after this process was killed
		_, err = unix.FcntlInt(f.lock.Fd(), unix.F_SETFD, 0)
	}
	if err == nil { // under its name it is locked from the first moment
		err = os.Rename(f.lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

// Remove removes the folder and what is in it.
func (f *Folder) Remove() error {
	return errors.Join(os.RemoveAll(f.Path), f.lock.Close())
}

// ours says whether a file is one of this user.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// sweep removes the folders of processes of this user that are no more.
func sweep(parent, prefix string) {
	left, _ := filepath.Glob(filepath.Join(parent, prefix+"*", lockName))
	for _, name := range left {
		if info, err := os.Lstat(filepath.Dir(name)); err != nil || !info.IsDir() || !ours(info) {
			continue
		}
		lock, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(filepath.Dir(name))
		}
		lock.Close()
	}
}
