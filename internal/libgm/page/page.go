// Package page is how a process that uses libgm.so shows its account to others: a small file, mapped by both, that the
// library keeps its counters in.
package page

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// Devices is how many devices a page has room for.
const Devices = 32

// Counter is one number over time, as in torch.cuda.memory_stats.
type Counter struct {
	Current   int64 `json:"current"`
	Peak      int64 `json:"peak"`
	Allocated int64 `json:"allocated"`
	Freed     int64 `json:"freed"`
}

// Add counts n more.
func (c *Counter) Add(n int64) {
	c.Current += n
	c.Allocated += n
	if c.Current > c.Peak {
		c.Peak = c.Current
	}
}

// Sub counts n less.
func (c *Counter) Sub(n int64) {
	c.Current -= n
	c.Freed += n
}

// The kinds that every quantity is counted for: requests of up to 1 MiB are small ones.
const (
	All = iota
	Small
	Large
	Kinds
)

// Account is struct gm_stats of gm.h, where each field is explained.
type Account struct {
	Allocation     [Kinds]Counter `json:"allocation"`
	AllocatedBytes [Kinds]Counter `json:"allocated_bytes"`
	RequestedBytes [Kinds]Counter `json:"requested_bytes"`
	ActiveBytes    [Kinds]Counter `json:"active_bytes"`
	ReservedBytes  [Kinds]Counter `json:"reserved_bytes"`
	Segment        [Kinds]Counter `json:"segment"`
	Retries        int64          `json:"retries"`
	OOMs           int64          `json:"ooms"`
	Stitches       int64          `json:"stitches"`
	DriverCalls    int64          `json:"driver_calls"`
	DriverNS       int64          `json:"driver_ns"`
}

// Device is what a page holds of one device.
type Device struct {
	Version uint64 // odd while the account changes
	Total   int64  // bytes of the device; 0 if the process has not used it
	Account Account
}

// header begins a page.
type header struct {
	Magic   [8]byte
	Started int64 // nanoseconds since the Unix epoch
	Size    int64 // of the page
}

const magic = "gmpage02"

// Page is the file as a whole.
type Page struct {
	header  header
	Devices [Devices]Device
}

// Stats is what a process shows.
type Stats struct {
	PID     int
	Started int64           // nanoseconds since the Unix epoch
	Devices map[int]Account // by ordinal
	Totals  map[int]int64   // bytes of each device
}

// Dir returns the folder of the pages: $GM_DIR, or one of this user in shared memory.
func Dir() string {
	if dir := os.Getenv("GM_DIR"); dir != "" {
		return dir
	}
	return "/dev/shm/gm." + strconv.Itoa(os.Getuid())
}

// List returns the processes that show their account, in order. Pages of processes that have died are removed.
func List() ([]int, error) {
	files, err := find(Dir())
	return slices.Sorted(maps.Keys(files)), err
}

// find returns the pages of a folder by process, and removes those that are left of processes that have died.
func find(dir string) (map[int]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	files := map[int]string{}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch pid, held, err := holder(name); {
		case err != nil: // another user's, or no page
		case !held:
			os.Remove(name)
		case pid > 0:
			files[pid] = name
		}
	}
	return files, nil
}

// open opens a page for reading: no link, and nothing that would have to be waited for.
func open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// holder says whether the process that made a page still runs, and which it is. That holds a lock on the page, which goes with the
// process, also where it was killed or became another program. The system tells its id as it is for this process: 0 if it runs in
// another container.
func holder(name string) (pid int, held bool, err error) {
	f, err := open(name)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	var begin [len(magic)]byte
	if n, err := f.Read(begin[:]); n < len(magic) || string(begin[:]) != magic {
		return 0, false, fmt.Errorf("%s: not a page: %w", name, err)
	}
	lock := syscall.Flock_t{Type: syscall.F_RDLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, false, fmt.Errorf("%s: %w", name, err)
	}
	return int(lock.Pid), lock.Type != syscall.F_UNLCK, nil
}

// ErrNone means that a process shows no account: it has not used the GPU, or does not run on libgm.so.
var ErrNone = errors.New("shows no GPU memory account")

// Read returns what a running process shows.
func Read(pid int) (Stats, error) {
	files, err := find(Dir())
	if err != nil {
		return Stats{}, err
	}
	name, ok := files[pid]
	if !ok {
		return Stats{}, fmt.Errorf("process %d %w", pid, ErrNone)
	}
	data, unmap, err := mapFile(name)
	if err != nil {
		return Stats{}, fmt.Errorf("read the account of process %d: %w", pid, err)
	}
	defer unmap()
	p := (*Page)(unsafe.Pointer(&data[0]))
	if string(p.header.Magic[:]) != magic || p.header.Size != int64(unsafe.Sizeof(*p)) {
		return Stats{}, fmt.Errorf("read the account of process %d: it is of another version of gm", pid)
	}
	s := Stats{PID: pid, Started: p.header.Started, Devices: map[int]Account{}, Totals: map[int]int64{}}
	for i := range p.Devices {
		d := p.Devices[i].read()
		if d.Total > 0 {
			s.Devices[i], s.Totals[i] = d.Account, d.Total
		}
	}
	return s, nil
}

// mapFile maps a page for reading.
func mapFile(name string) (data []byte, unmap func(), err error) {
	f, err := open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	const size = int(unsafe.Sizeof(Page{}))
	if info.Size() != int64(size) {
		return nil, nil, fmt.Errorf("%s: %d bytes, not the %d of a page", name, info.Size(), size)
	}
	data, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", name, err)
	}
	return data, func() { syscall.Munmap(data) }, nil
}
