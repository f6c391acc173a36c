package capture

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"gm/internal/capture/ring"
)

// journal stores what was read from a process's ring in a file that outlives this process. The file is a sequence of frames, each with the
// range of ring positions that it covers. Slots of the ring are freed only when their frame is written, so what follows the last frame is
// still in the ring. The file is not held open, since there may be many processes and few descriptors.
type journal struct {
	name    string
	packer  *zstd.Encoder
	about   ring.Header
	size    int64  // bytes of the file's frames
	to      uint64 // position in the ring up to which the frames reach
	pending []byte // messages of the next frame
	urgent  bool   // pending holds what is in no ring, such as NVML's figures
	written time.Time
}

const (
	frameMagic = 0x314e524a54474d47 // "GMGTJRN1"
	frameHead  = 40                 // bytes

	// A frame is written when frameSlots slots of the ring wait for it, or after framePeriod.
	frameSlots  = ring.Slots / 4
	framePeriod = 2 * time.Second
	// maxFrame is the most bytes of a frame: all slots of a ring, and samples.
	maxFrame = 2 * ring.Slots * 64

	messageHead = 56 // bytes
)

// The kinds of frames.
const (
	frameAbout = iota + 1 // the header of the ring, as JSON
	frameMessages
	frameEnd // the counters of the ring, as JSON; the last frame
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newPacker() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
}

// add adds a record. A record that NVML's figures were added to makes the journal urgent.
func (j *journal) add(r *ring.Record) {
	if r.Kind == kindSample && len(j.pending) > maxFrame/2 {
		return // the disk is full: the remaining room is for the program's records
	}
	p := j.pending
	for _, n := range []uint64{uint64(r.TimeNS), r.A, r.B, r.C, r.D, r.Caller} {
		p = binary.LittleEndian.AppendUint64(p, n)
	}
	p = binary.LittleEndian.AppendUint32(p, uint32(r.Thread))
	p = binary.LittleEndian.AppendUint16(p, uint16(r.Device))
	j.pending = append(append(p, byte(r.Kind), byte(len(r.Extra)/extraBytes)), r.Extra...)
	j.urgent = j.urgent || r.Kind == ring.Context || r.Kind == ring.Primary
}

// extraBytes is what each extra slot adds to a message.
const extraBytes = 56

// takeMessage decodes the first message of data into a record, and returns the rest.
func takeMessage(data []byte, r *ring.Record) (rest []byte, err error) {
	if len(data) < messageHead || len(data) < messageHead+int(data[messageHead-1])*extraBytes {
		return nil, errors.New("a message is cut short")
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	*r = ring.Record{
		TimeNS: int64(word(0)), A: word(1), B: word(2), C: word(3), D: word(4), Caller: word(5),
		Thread: int32(binary.LittleEndian.Uint32(data[48:])), Device: int32(int16(binary.LittleEndian.Uint16(data[52:]))),
		Kind: ring.Kind(data[54]),
	}
	end := messageHead + int(data[messageHead-1])*extraBytes
	r.Extra = data[messageHead:end]
	return data[end:], nil
}

// due reports whether it is time to write a frame, given how many slots of the ring wait for it.
func (j *journal) due(slots int, now time.Time) bool {
	if len(j.pending) == 0 && slots == 0 {
		return false
	}
	return slots >= frameSlots || j.urgent || now.Sub(j.written) >= framePeriod
}

// flush writes the pending messages, which reach up to a position in the ring, as a frame. If that fails they stay pending.
func (j *journal) flush(to uint64, now time.Time) error {
	j.written = now
	frames, err := j.opening()
	if err != nil {
		return err
	}
	frames = appendFrame(frames, frameMessages, j.to, to, j.packer.EncodeAll(j.pending, nil))
	if err := j.write(frames); err != nil {
		return err
	}
	j.to, j.pending, j.urgent = to, j.pending[:0], false
	return nil
}

// end writes the last frame.
func (j *journal) end(c ring.Counters) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("keep records: %w", err)
	}
	return j.write(appendFrame(nil, frameEnd, j.to, j.to, text))
}

// opening returns the first frame if it is not written yet.
func (j *journal) opening() ([]byte, error) {
	if j.size > 0 {
		return nil, nil
	}
	text, err := json.Marshal(j.about)
	if err != nil {
		return nil, fmt.Errorf("keep records: %w", err)
	}
	return appendFrame(nil, frameAbout, 0, 0, text), nil
}

// write appends frames to the complete ones, over the remains of an incomplete write.
func (j *journal) write(frames []byte) error {
	f, err := os.OpenFile(j.name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("keep records: %w", err)
	}
	_, err = f.WriteAt(frames, j.size)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep records: %w", err)
	}
	j.size += int64(len(frames))
	return nil
}

func appendFrame(to []byte, kind uint32, from, until uint64, content []byte) []byte {
	start := len(to)
	to = binary.LittleEndian.AppendUint64(to, frameMagic)
	to = binary.LittleEndian.AppendUint32(to, kind)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(content)))
	to = binary.LittleEndian.AppendUint64(to, from)
	to = binary.LittleEndian.AppendUint64(to, until)
	sum := crc32.Update(crc32.Checksum(to[start:], castagnoli), castagnoli, content)
	to = binary.LittleEndian.AppendUint64(to, uint64(sum))
	return append(to, content...)
}

// frame is a frame of a journal.
type frame struct {
	kind     uint32
	from, to uint64
	content  []byte
}

// frames reads the frames of a journal in order.
type frames struct {
	file *os.File // nil if there is no journal
	at   int64
	head [frameHead]byte
	body []byte
}

// openFrames opens a journal. One that does not exist has no frames.
func openFrames(name string) (*frames, error) {
	f, err := openRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &frames{}, nil
	} else if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	return &frames{file: f}, nil
}

// next returns the next frame, valid until the next call, and io.EOF after the last complete one.
func (f *frames) next() (frame, error) {
	if f.file == nil {
		return frame{}, io.EOF
	}
	if _, err := f.file.ReadAt(f.head[:], f.at); errors.Is(err, io.EOF) {
		return frame{}, io.EOF
	} else if err != nil {
		return frame{}, fmt.Errorf("read records: %w", err)
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(f.head[at:]) }
	length := binary.LittleEndian.Uint32(f.head[12:])
	if word(0) != frameMagic || length > maxFrame {
		return frame{}, io.EOF
	}
	f.body = append(f.body[:0], make([]byte, length)...)
	if _, err := f.file.ReadAt(f.body, f.at+frameHead); errors.Is(err, io.EOF) {
		return frame{}, io.EOF // its end was not written
	} else if err != nil {
		return frame{}, fmt.Errorf("read records: %w", err)
	}
	if sum := crc32.Update(crc32.Checksum(f.head[:32], castagnoli), castagnoli, f.body); word(32) != uint64(sum) {
		return frame{}, io.EOF
	}
	f.at += frameHead + int64(length)
	return frame{binary.LittleEndian.Uint32(f.head[8:]), word(16), word(24), f.body}, nil
}

func (f *frames) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// openRegular opens a regular file to read. Programs may put other things into a session's folder, such as a FIFO, whose opening would
// block.
func openRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", name), err, f.Close())
	}
	return f, nil
}
