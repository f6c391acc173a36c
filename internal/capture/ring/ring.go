// Package ring reads what a traced process tells of its memory: the file that gmtrace's preload library
// (tools/gmtrace/preload, whose ring.h documents the layout) writes from within the process.
package ring

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Ring is the ring of one process, mapped into this one. It is read by one goroutine.
type Ring struct {
	Header Header

	memory  []byte
	records []slot
	next    uint64 // position of the next slot to read
	extra   []byte
	skipped int
	last    Counters // when it was closed
}

// Header is what a process said of itself when it first touched CUDA.
type Header struct {
	PID       int
	Rank      int // of WorldSize processes; -1 when unknown, as the two below
	LocalRank int
	WorldSize int
	StartNS   int64    // nanoseconds since the Unix epoch
	Command   []string // words of the command line
}

// Counters tell how the ring served the process.
type Counters struct {
	Waits    uint64 // times that a thread waited for the ring to be emptied
	WaitedNS uint64
	Lost     uint64 // records that were given up, since nobody emptied the ring for five seconds
	Torn     int    // slots that a killed process left unfinished
}

// The layout of ring.h.
const (
	magic      = 0x31474e495254474d
	version    = 1
	headerSize = 8192
	slotCount  = 65536
	slotSize   = 64
	extraFlag  = 1 << 63
	extraBytes = 56
	fileSize   = headerSize + slotCount*slotSize

	offVersion   = 8
	offSlots     = 12
	offPID       = 16
	offRank      = 20
	offLocalRank = 24
	offWorldSize = 28
	offStart     = 32
	offCommand   = 40
	commandSize  = 4096 - 40
	offHead      = 4096
	offTail      = 4096 + 64
	offClosed    = offTail + 8
	offWaits     = offTail + 64
	offWaitedNS  = offWaits + 8
	offLost      = offWaits + 16
)

// slot is struct gm_record.
type slot struct {
	seq        uint64
	timeNS     uint64
	a, b, c, d uint64
	caller     uint64
	thread     uint32
	device     int16
	kind       uint8
	extra      uint8
}

// Open maps the named file.
func Open(name string) (*Ring, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != fileSize {
		return nil, fmt.Errorf("open ring %s: %d bytes, expected %d", name, info.Size(), fileSize)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, fileSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("open ring %s: %w", name, err)
	}
	r := &Ring{memory: memory, records: unsafe.Slice((*slot)(unsafe.Pointer(&memory[headerSize])), slotCount)}
	if *r.word(0) != magic || r.int32(offVersion) != version || r.int32(offSlots) != slotCount {
		return nil, fmt.Errorf("open ring %s: made by another version of gmtrace", name)
	}
	r.Header = Header{
		PID: r.int32(offPID), Rank: r.int32(offRank), LocalRank: r.int32(offLocalRank), WorldSize: r.int32(offWorldSize),
		StartNS: int64(*r.word(offStart)), Command: words(memory[offCommand : offCommand+commandSize]),
	}
	return r, nil
}

// words splits texts that end in a zero byte each.
func words(text []byte) []string {
	var list []string
	for {
		end := bytes.IndexByte(text, 0)
		if end <= 0 {
			return list
		}
		list = append(list, string(text[:end]))
		text = text[end+1:]
	}
}

// word returns a field of eight bytes: it is aligned, since mappings begin at pages.
func (r *Ring) word(offset int) *uint64 { return (*uint64)(unsafe.Pointer(&r.memory[offset])) }

func (r *Ring) int32(offset int) int { return int(*(*int32)(unsafe.Pointer(&r.memory[offset]))) }

// Read calls visit with each record that is whole, in order, and frees its room. The record and its Extra are valid until visit
// returns. It returns how many there were.
func (r *Ring) Read(visit func(*Record)) int {
	return r.read(visit, false)
}

// Finish reads what is left when the process is dead, stepping over what it left unfinished.
func (r *Ring) Finish(visit func(*Record)) int {
	return r.read(visit, true)
}

func (r *Ring) read(visit func(*Record), dead bool) int {
	if r.memory == nil {
		return 0
	}
	n := 0
	head := atomic.LoadUint64(r.word(offHead))
	for r.next < head {
		s := &r.records[r.next%slotCount]
		if atomic.LoadUint64(&s.seq) != r.next+1 {
			if !dead {
				return n
			}
			r.step(1)
			r.skipped++
			continue
		}
		rec := Record{
			Kind: Kind(s.kind), TimeNS: int64(s.timeNS), A: s.a, B: s.b, C: s.c, D: s.d, Caller: s.caller,
			Thread: int32(s.thread), Device: int32(s.device), Extra: r.gather(int(s.extra)),
		}
		visit(&rec)
		r.step(1 + uint64(s.extra))
		n++
	}
	return n
}

// gather copies the n slots behind the next one. They are whole, since a record is written last.
func (r *Ring) gather(n int) []byte {
	r.extra = r.extra[:0]
	for i := range uint64(n) {
		s := &r.records[(r.next+1+i)%slotCount]
		r.extra = append(r.extra, unsafe.Slice((*byte)(unsafe.Pointer(&s.timeNS)), extraBytes)...)
	}
	return r.extra
}

// step frees n slots.
func (r *Ring) step(n uint64) {
	r.next += n
	atomic.StoreUint64(r.word(offTail), r.next)
}

// Counters returns the counters so far.
func (r *Ring) Counters() Counters {
	if r.memory == nil {
		return r.last
	}
	return Counters{
		Waits: atomic.LoadUint64(r.word(offWaits)), WaitedNS: atomic.LoadUint64(r.word(offWaitedNS)),
		Lost: atomic.LoadUint64(r.word(offLost)), Torn: r.skipped,
	}
}

// Close tells the process to write no more, and unmaps the ring. Nothing is read from it any more; its Header and its Counters
// remain.
func (r *Ring) Close() error {
	if r.memory == nil {
		return nil
	}
	r.last = r.Counters()
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&r.memory[offClosed])), 1)
	memory := r.memory
	r.memory, r.records = nil, nil
	return syscall.Munmap(memory)
}
