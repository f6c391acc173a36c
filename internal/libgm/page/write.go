package page

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Create makes the page of this process in a folder, which is made if it is not there, and removes those of processes that have
// died. It is mapped until the process ends; remove takes it out of the folder. Containers may share the folder and have
// processes of the same id, so the name is of the time, too, and is no more than a name.
func Create(dir string) (p *Page, remove func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the folder of the page: %w", err)
	}
	f, err := openFolder(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("make a page: %w", err)
	}
	defer f.Close()
	if _, err := f.pages(); err != nil {
		return nil, nil, fmt.Errorf("look for old pages: %w", err)
	}
	now := time.Now().UnixNano()
	name := fmt.Sprintf("%d.%d", os.Getpid(), now)
	path := filepath.Join(dir, name)
	fd, err := unix.Openat(int(f.Fd()), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("make the page %s: %w", path, err)
	}
	if p, err = fill(fd, now); err != nil {
		f.remove(name)
		return nil, nil, errors.Join(fmt.Errorf("make the page %s: %w", path, err), syscall.Close(fd))
	}
	return p, func() { os.Remove(path) }, nil
}

// lastPrefix begins the names of the files of Save.
const lastPrefix = "last."

// Save leaves the page of this process in a folder of this user, at its end. Where the folder is gone, as when the one who made it did not wait
// for this process, it does nothing.
func (p *Page) Save(dir string) error {
	f, err := openFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("save the page: %w", err)
	}
	defer f.Close()
	name := fmt.Sprint(lastPrefix, os.Getpid())
	fd, err := unix.Openat(int(f.Fd()), "."+name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("save the page: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.Write(unsafe.Slice((*byte)(unsafe.Pointer(p)), pageSize))
	if err = errors.Join(err, file.Close()); err == nil {
		err = unix.Renameat(int(f.Fd()), "."+name, int(f.Fd()), name)
	}
	if err != nil {
		return fmt.Errorf("save the page: %w", err)
	}
	return nil
}

// fill makes a page of an empty file, whose descriptor stays open: the lock is lost with it. What is no page yet is removed by nobody. The
// room is taken by writing into it: to map a file on a full disk and to find no room later would be the end of the process.
func fill(fd int, now int64) (*Page, error) {
	if n, err := syscall.Pwrite(fd, make([]byte, pageSize), 0); err != nil || n < pageSize {
		return nil, fmt.Errorf("make room for %d bytes, of which there are %d: %w", pageSize, max(n, 0), cmp.Or(err, error(syscall.ENOSPC)))
	}
	if err := syscall.FcntlFlock(uintptr(fd), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		return nil, fmt.Errorf("lock it: %w", err)
	}
	data, err := syscall.Mmap(fd, 0, pageSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map it: %w", err)
	}
	p := (*Page)(unsafe.Pointer(&data[0]))
	p.header = header{Started: now, Size: int64(pageSize)}
	copy(p.header.Magic[:], magic)
	return p, nil
}
