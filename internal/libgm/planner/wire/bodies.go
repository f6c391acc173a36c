package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gm/internal/blocks"
	"gm/internal/cuda"
)

const (
	requestSize = 8 + 8 + 4         // size, stream, lasts
	cycleHead   = 1 + 4 + 4         // proven, counts of arenas and of steps
	stepSize    = 8 + 8 + 4 + 8 + 4 // size, stream, arena, offset, lasts
	notBytes    = "%d bytes: not within 0 and %d"
)

// AppendRequests encodes the body of AskLayout.
func AppendRequests(to []byte, requests []blocks.Request) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(len(requests)))
	for _, r := range requests {
		to = binary.LittleEndian.AppendUint64(to, uint64(r.Size))
		to = binary.LittleEndian.AppendUint64(to, uint64(r.Stream))
		to = binary.LittleEndian.AppendUint32(to, uint32(r.Lasts))
	}
	return to
}

// AppendSoon encodes the body of AskSoon: the bytes that there are for all arenas, and requests.
func AppendSoon(to []byte, room int64, requests []blocks.Request) []byte {
	return AppendRequests(binary.LittleEndian.AppendUint64(to, uint64(room)), requests)
}

// Requests decodes the body of AskLayout.
func Requests(body []byte) ([]blocks.Request, error) {
	in := reader{rest: body}
	return in.requests()
}

// Soon decodes the body of AskSoon.
func Soon(body []byte) (room int64, requests []blocks.Request, err error) {
	in := reader{rest: body}
	if room = in.int64(); room < 0 {
		in.fail(fmt.Errorf("room for %d bytes", room))
	}
	requests, err = in.requests()
	return room, requests, err
}

func (in *reader) requests() ([]blocks.Request, error) {
	n := in.count(MaxRequests, requestSize)
	if n == 0 {
		in.fail(errors.New("no requests"))
	}
	requests := make([]blocks.Request, n)
	for i := range requests {
		requests[i] = blocks.Request{Size: in.int64(), Stream: cuda.Stream(in.int64()), Lasts: in.int32()}
		if r := &requests[i]; r.Size < 0 || r.Size > blocks.MaxSize || r.Lasts < 0 {
			in.fail(fmt.Errorf("request %d of "+notBytes+", freed %d requests later", i, r.Size, int64(blocks.MaxSize), r.Lasts))
		}
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	return requests, nil
}

// AppendFile encodes the body of AskFile: the name of a plan file, which must be absolute, and a device's ordinal.
func AppendFile(to []byte, name string, device int32) []byte {
	return append(binary.LittleEndian.AppendUint32(to, uint32(device)), name...)
}

// File decodes the body of AskFile.
func File(body []byte) (name string, device int32, err error) {
	in := reader{rest: body}
	device = in.int32()
	if name = string(in.rest); in.err == nil && (name == "" || name[0] != '/') {
		in.fail(fmt.Errorf("the plan's name %q is not absolute", name))
	}
	return name, device, in.err
}

// AppendCycle encodes the body of Cycle.
func AppendCycle(to []byte, c *blocks.Cycle) []byte {
	proven := byte(0)
	if c.Proven {
		proven = 1
	}
	to = append(to, proven)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(c.Arenas)))
	for _, size := range c.Arenas {
		to = binary.LittleEndian.AppendUint64(to, uint64(size))
	}
	to = binary.LittleEndian.AppendUint32(to, uint32(len(c.Steps)))
	for i := range c.Steps {
		s := &c.Steps[i]
		to = binary.LittleEndian.AppendUint64(to, uint64(s.Size))
		to = binary.LittleEndian.AppendUint64(to, uint64(s.Stream))
		to = binary.LittleEndian.AppendUint32(to, uint32(s.Arena))
		to = binary.LittleEndian.AppendUint64(to, uint64(s.Offset))
		to = binary.LittleEndian.AppendUint32(to, uint32(s.Lasts))
	}
	return to
}

// DecodeCycle decodes the body of Cycle, and checks that no two steps of it share memory while both are in use.
func DecodeCycle(body []byte) (*blocks.Cycle, error) {
	in := reader{rest: body}
	c := &blocks.Cycle{Proven: in.bool()}
	c.Arenas = make([]int64, in.count(MaxArenas, 8))
	for i := range c.Arenas {
		c.Arenas[i] = in.int64()
	}
	c.Steps = make([]blocks.Step, in.count(MaxSteps, stepSize))
	for i := range c.Steps {
		c.Steps[i] = blocks.Step{Size: in.int64(), Stream: cuda.Stream(in.int64()), Arena: in.int32(), Offset: in.int64(), Lasts: in.int32()}
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	return c, c.Check()
}

// reader takes numbers from a body. After the first error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

func (in *reader) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *reader) take(n int) []byte {
	if in.err == nil && len(in.rest) < n {
		in.fail(errors.New("the body ends too early"))
	}
	if in.err != nil {
		return make([]byte, n)
	}
	taken := in.rest[:n]
	in.rest = in.rest[n:]
	return taken
}

func (in *reader) int64() int64 { return int64(binary.LittleEndian.Uint64(in.take(8))) }
func (in *reader) int32() int32 { return int32(binary.LittleEndian.Uint32(in.take(4))) }

func (in *reader) bool() bool {
	b := in.take(1)[0]
	if b > 1 {
		in.fail(fmt.Errorf("%d is neither true nor false", b))
	}
	return b == 1
}

// count returns how many items of a size follow, 0 for more than may be or than there are.
func (in *reader) count(most, size int) int {
	n := binary.LittleEndian.Uint32(in.take(4))
	if in.err == nil && (uint64(n) > uint64(most) || uint64(n)*uint64(size) > uint64(len(in.rest))) {
		in.fail(fmt.Errorf("%d items of %d bytes: at most %d are allowed, and the body has %d bytes left", n, size, most, len(in.rest)))
	}
	if in.err != nil {
		return 0
	}
	return int(n)
}

// end returns what was wrong, such as bytes that are left.
func (in *reader) end() error {
	if in.err == nil && len(in.rest) > 0 {
		in.fail(fmt.Errorf("%d bytes are left behind the body", len(in.rest)))
	}
	return in.err
}
