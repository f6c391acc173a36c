package page

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Dir returns the folder of the pages: $GM_DIR, or one of this user in shared memory.
func Dir() string {
	if dir := os.Getenv("GM_DIR"); dir != "" {
		return dir
	}
	return "/dev/shm/gm." + strconv.Itoa(os.Getuid())
}

// folder is an open folder of pages, which belongs to this user: others could put what they like into another.
type folder struct {
	*os.File
}

// openFolder opens a folder. It follows no link, and refuses one that is not this user's, or that everybody may write
// to. A group may: where each user has a group of their own, folders are made so.
func openFolder(path string) (*folder, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is no folder but a file or a link: GM_DIR can name another", path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := &folder{os.NewFile(uintptr(fd), path)}
	var stat unix.Stat_t
	err = unix.Fstat(fd, &stat)
	switch {
	case err != nil:
	case int(stat.Uid) != os.Geteuid():
		err = fmt.Errorf("%s belongs to another user: GM_DIR can name another folder", path)
	case stat.Mode&0o002 != 0:
		err = fmt.Errorf("%s is a folder that everybody may write to: GM_DIR can name another", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// open opens a page for reading: a file of this user, no link, and nothing that would have to be waited for.
func (f *folder) open(name string) (*os.File, error) {
	fd, err := unix.Openat(int(f.Fd()), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	var stat unix.Stat_t
	err = unix.Fstat(fd, &stat)
	if err == nil && (stat.Mode&unix.S_IFMT != unix.S_IFREG || int(stat.Uid) != os.Geteuid()) {
		err = fmt.Errorf("%s: no file of this user", name)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// remove removes a page.
func (f *folder) remove(name string) { _ = unix.Unlinkat(int(f.Fd()), name, 0) }
