package page

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// checkOwner makes sure that a folder is one of this user: pages in another's could be replaced.
func checkOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the folder of the page: %w", err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("the folder of the page, %s, is not one of this user", dir)
	}
	return nil
}

// Create makes the page of this process in a folder, which is made if it is not there, and removes those of processes that have
// died. It is mapped until the process ends; remove takes it out of the folder. Containers may share the folder and have
// processes of the same id, so the name is of the time, too, and is no more than a name.
func Create(dir string) (p *Page, remove func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the folder of the page: %w", err)
	}
	if err := checkOwner(dir); err != nil {
		return nil, nil, err
	}
	if _, err := find(dir); err != nil {
		return nil, nil, err
	}
	now := time.Now().UnixNano()
	name := filepath.Join(dir, fmt.Sprintf("%d.%d", os.Getpid(), now))
	fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("make the page %s: %w", name, err)
	}
	remove = func() { os.Remove(name) }
	if p, err = fill(fd, now); err != nil {
		remove()
		return nil, nil, errors.Join(fmt.Errorf("make the page %s: %w", name, err), syscall.Close(fd))
	}
	return p, remove, nil
}

// fill makes a page of an empty file, whose descriptor stays open: the lock is lost with it. What is no page yet is removed by nobody.
func fill(fd int, now int64) (*Page, error) {
	const size = int(unsafe.Sizeof(Page{}))
	if err := syscall.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("make room: %w", err)
	}
	if err := syscall.FcntlFlock(uintptr(fd), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		return nil, fmt.Errorf("lock it: %w", err)
	}
	data, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map it: %w", err)
	}
	p := (*Page)(unsafe.Pointer(&data[0]))
	p.header = header{Started: now, Size: int64(size)}
	copy(p.header.Magic[:], magic)
	return p, nil
}

// read copies what a device shows, again while it was changed meanwhile; of one that never rests, what there is.
func (d *Device) read() (c Device) {
	const words = int(unsafe.Sizeof(*d) / 8)
	from, to := (*[words]int64)(unsafe.Pointer(d)), (*[words]int64)(unsafe.Pointer(&c))
	for try := 0; ; try++ {
		before := atomic.LoadUint64(&d.Version)
		for i := range from {
			to[i] = atomic.LoadInt64(&from[i])
		}
		if before%2 == 0 && atomic.LoadUint64(&d.Version) == before || try == 1000 {
			return c
		}
		runtime.Gosched()
	}
}
