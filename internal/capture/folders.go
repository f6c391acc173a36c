package capture

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const (
	memoryFolder = "/dev/shm"
	folderPrefix = "gmtrace-"
	lockName     = "lock"
)

// folder is a folder of a session. It is locked as long as the session lives, so that others can tell what a session that was killed
// has left behind.
type folder struct {
	path string
	lock *os.File
}

// makeFolder makes a folder, and removes those of sessions that are no more.
func makeFolder(parent string) (*folder, error) {
	sweep(parent)
	path, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path}
	if f.lock, err = os.OpenFile(filepath.Join(path, lockName+".new"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	err = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX)
	if err == nil { // under its name it is locked from the first moment
		err = os.Rename(f.lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// sweep removes the folders of this user's sessions whose gmtrace was killed.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*", lockName))
	for _, name := range left {
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(filepath.Dir(name))
		}
		lock.Close()
	}
}
