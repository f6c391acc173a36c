package page

import (
	"fmt"
	"os"
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

// Create makes the page of this process in a folder, which is made if it is not there, in place of one that a dead process of the
// same id left. It is mapped until the process ends.
func Create(dir string) (*Page, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the page: %w", err)
	}
	if err := checkOwner(dir); err != nil {
		return nil, err
	}
	name := path(dir, os.Getpid())
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("remove an old page: %w", err)
	}
	fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the page %s: %w", name, err)
	}
	const size = int(unsafe.Sizeof(Page{}))
	if err := syscall.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("make the page %s: %w", name, err)
	}
	// The descriptor stays open: the lock is lost with it.
	if err := syscall.FcntlFlock(uintptr(fd), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		return nil, fmt.Errorf("lock the page %s: %w", name, err)
	}
	data, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the page %s: %w", name, err)
	}
	p := (*Page)(unsafe.Pointer(&data[0]))
	p.header = header{PID: int64(os.Getpid()), Started: time.Now().UnixNano(), Size: int64(size)}
	copy(p.header.Magic[:], magic)
	return p, nil
}

// Remove deletes the page of this process from a folder.
func Remove(dir string) { os.Remove(path(dir, os.Getpid())) }

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
