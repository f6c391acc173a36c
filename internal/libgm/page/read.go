package page

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Stats is what a process shows.
type Stats struct {
	PID     int
	Started int64           // nanoseconds since the Unix epoch
	Devices map[int]Account // by ordinal
	Totals  map[int]int64   // bytes of each device
}

// ErrNone means that a process shows no account: it has not used the GPU, or does not run on libgm.so.
var ErrNone = errors.New("shows no GPU memory account")

// List returns the processes of this user that show their account, in order. Pages of processes that have died are removed.
func List() ([]int, error) {
	f, files, err := find(Dir())
	if f != nil {
		f.Close()
	}
	return slices.Sorted(maps.Keys(files)), err
}

// Read returns what a running process of this user shows.
func Read(pid int) (Stats, error) {
	f, files, err := find(Dir())
	if err != nil {
		return Stats{}, err
	}
	name, ok := files[pid]
	if !ok {
		return Stats{}, fmt.Errorf("process %d %w", pid, ErrNone)
	}
	defer f.Close()
	page, err := f.open(name)
	if err != nil {
		return Stats{}, fmt.Errorf("read the account of process %d: %w", pid, err)
	}
	defer page.Close()
	s, err := read(page)
	if err != nil {
		return Stats{}, fmt.Errorf("read the account of process %d: %w", pid, err)
	}
	s.PID = pid
	return s, nil
}

// Saved returns what processes have left in a folder at their ends, with an error for each that cannot be read.
func Saved(dir string) ([]Stats, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []Stats
	var errs []error
	for _, file := range files {
		number, ok := strings.CutPrefix(file.Name(), lastPrefix)
		pid, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		s, err := readSaved(filepath.Join(dir, file.Name()))
		if err != nil {
			errs = append(errs, fmt.Errorf("read the last account of process %d: %w", pid, err))
			continue
		}
		s.PID = pid
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

func readSaved(name string) (Stats, error) {
	f, err := os.Open(name)
	if err != nil {
		return Stats{}, err
	}
	defer f.Close()
	return read(f)
}

// find returns a folder and its pages by process, and removes those that are left of processes that have died. There is no folder to
// close after an error, and where there is none.
func find(dir string) (*folder, map[int]string, error) {
	f, err := openFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list processes: %w", err)
	}
	files, err := f.pages()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("list processes: %w", err)
	}
	return f, files, nil
}

// pages returns the pages of running processes, and removes those of others.
func (f *folder) pages() (map[int]string, error) {
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	files := map[int]string{}
	for _, name := range names {
		switch pid, held, err := f.holder(name); {
		case err != nil: // no page of this user
		case !held:
			f.remove(name)
		case pid > 0:
			files[pid] = name
		}
	}
	return files, nil
}

// holder says whether the process that made a page still runs, and which it is. That holds a lock on the page, which goes with the
// process, also where it was killed or became another program. The system tells its id as it is for this process: 0 if it runs in
// another container.
func (f *folder) holder(name string) (pid int, held bool, err error) {
	page, err := f.open(name)
	if err != nil {
		return 0, false, err
	}
	defer page.Close()
	var begin [len(magic)]byte
	if n, err := page.Read(begin[:]); n < len(magic) || string(begin[:]) != magic {
		return 0, false, fmt.Errorf("%s: not a page: %w", name, err)
	}
	lock := syscall.Flock_t{Type: syscall.F_RDLCK}
	if err := syscall.FcntlFlock(page.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, false, fmt.Errorf("%s: %w", name, err)
	}
	return int(lock.Pid), lock.Type != syscall.F_UNLCK, nil
}

// read copies what a page shows. It is not mapped: to touch what the file no longer holds would be the end of this process.
func read(file io.ReaderAt) (Stats, error) {
	p := new(Page)
	if err := readAt(file, unsafe.Slice((*byte)(unsafe.Pointer(p)), pageSize), 0); err != nil {
		return Stats{}, err
	}
	if string(p.header.Magic[:]) != magic || p.header.Size != int64(pageSize) {
		return Stats{}, errors.New("it is of another version of gm")
	}
	s := Stats{Started: p.header.Started, Devices: map[int]Account{}, Totals: map[int]int64{}}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Total <= 0 {
			continue
		}
		if err := d.settle(file, int64(unsafe.Offsetof(p.Devices))+int64(i*deviceSize)); err != nil {
			return Stats{}, err
		}
		s.Devices[i], s.Totals[i] = d.Account, d.Total
	}
	return s, nil
}

// settle reads a device at an offset again while it was changed meanwhile. A process that is stopped in the midst of a change never
// rests: after a while it is what there is.
func (d *Device) settle(file io.ReaderAt, at int64) error {
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		var now [8]byte
		if err := readAt(file, now[:], at); err != nil {
			return err
		}
		if d.Version%2 == 0 && binary.NativeEndian.Uint64(now[:]) == d.Version {
			return nil
		}
		runtime.Gosched()
		if err := readAt(file, unsafe.Slice((*byte)(unsafe.Pointer(d)), deviceSize), at); err != nil {
			return err
		}
	}
	return nil
}

// readAt fills a buffer from a file that may be cut off at any time.
func readAt(file io.ReaderAt, buffer []byte, at int64) error {
	_, err := file.ReadAt(buffer, at)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the page ends before byte %d: it is cut off, or of another version of gm", at+int64(len(buffer)))
	}
	return err
}
