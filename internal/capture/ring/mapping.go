package ring

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layout of ring.h.
const (
	magic      = 0x32474e495254474d
	version    = 2
	headerSize = 8192
	slotCount  = 65536
	slotSize   = 64
	extraFlag  = 1 << 63
	extraBytes = 56
	maxMessage = 256 // slots
	fileSize   = headerSize + slotCount*slotSize

	offVersion   = 8
	offSlots     = 12
	offPID       = 16
	offRank      = 20
	offLocalRank = 24
	offWorldSize = 28
	offStart     = 32
	offStartMono = 40
	offCommand   = 48
	commandSize  = 4096 - 48
	offHead      = 4096
	offTail      = 4096 + 64
	offClosed    = offTail + 8
	offWaits     = offTail + 64
	offWaitedNS  = offWaits + 8
	offLost      = offWaits + 16
	offGivenUp   = offWaits + 24
)

// Slots is the number of slots of a ring.
const Slots = slotCount

// slot is struct gm_record.
type slot struct {
	seq        uint64
	timeNS     uint64 // on the monotonic clock
	a, b, c, d uint64
	caller     uint64
	thread     uint32
	device     int16
	kind       uint8
	extra      uint8
}

// bytes returns the payload of an extra slot.
func (s *slot) bytes() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&s.timeNS)), extraBytes) }

// mapping is the file of a ring, mapped into memory.
type mapping struct {
	memory   []byte
	slots    []slot
	readOnly bool
}

// Open maps the named file. It must be a regular file of a ring's size, since programs may put anything into the folder.
func Open(name string) (*Ring, error) {
	return open(name, os.O_RDWR, syscall.PROT_READ|syscall.PROT_WRITE)
}

// OpenCopy maps the named file for reading only. The process that writes it does not notice.
func OpenCopy(name string) (*Ring, error) { return open(name, os.O_RDONLY, syscall.PROT_READ) }

func open(name string, flags, protection int) (*Ring, error) {
	f, err := os.OpenFile(name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open ring: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("open ring: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open ring %s: it is not a regular file", name)
	case info.Size() != fileSize:
		return nil, fmt.Errorf("open ring %s: %d bytes, expected %d", name, info.Size(), fileSize)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, fileSize, protection, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("open ring %s: %w", name, err)
	}
	r := &Ring{mapping: mapping{
		memory: memory, slots: unsafe.Slice((*slot)(unsafe.Pointer(&memory[headerSize])), slotCount),
		readOnly: protection&syscall.PROT_WRITE == 0,
	}}
	err = r.mapping.safely(func() { err = r.readHeader() })
	if err == nil && r.Header.PID == 0 {
		err = errors.New("made by another version of gmtrace, or no ring")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open ring %s: %w", name, err), r.mapping.close())
	}
	return r, nil
}

// safely calls a function that reads the mapping. If the file was cut short, the read faults; safely returns that as ErrCut.
func (m *mapping) safely(read func()) (err error) {
	if m.memory == nil {
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			if !m.holds(fault.Addr()) {
				panic(fault)
			}
			err = ErrCut
		default:
			panic(fault)
		}
	}()
	read()
	return nil
}

func (m *mapping) holds(address uintptr) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(m.memory)))
	return address >= from && address < from+uintptr(len(m.memory))
}

// word returns a field of eight bytes. It is aligned, since mappings begin at a page.
func (m *mapping) word(offset int) *uint64 { return (*uint64)(unsafe.Pointer(&m.memory[offset])) }

func (m *mapping) half(offset int) *uint32 { return (*uint32)(unsafe.Pointer(&m.memory[offset])) }

func (m *mapping) int32(offset int) int { return int(int32(*m.half(offset))) }

func (m *mapping) close() error {
	if m.memory == nil {
		return nil
	}
	memory := m.memory
	m.memory, m.slots = nil, nil
	return syscall.Munmap(memory)
}
