package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gm/internal/cuda"
	"gm/internal/swap/host"
)

const (
	cells = 12
	users = 3
)

// tensor is memory that a program had copied out.
type tensor struct {
	pattern byte
	size    int64
	name    Ticket
}

// program writes tensors into cells of a device, has an engine move them, and reads them. Each cell belongs to one of its streams, in whose
// order all is done.
type program struct {
	t       testing.TB
	rng     *rand.Rand
	d       *device
	e       *Engine
	streams [users]cuda.Stream
	out     []tensor // on the host
	next    byte
	full    int
	reads   int
	lines   []string
}

func newProgram(t testing.TB, seed uint64, o Options) *program {
	p := &program{t: t, rng: rand.New(rand.NewPCG(seed, 4))}
	p.d = newDevice(t, p.rng, cells*cellSize)
	for i := range p.streams {
		p.streams[i], _ = p.d.StreamCreate()
	}
	o.Node = -1
	o.Log = func(line string) { p.lines = append(p.lines, line) }
	var err error
	if p.e, err = Open(p.d, o); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) at(cell int) cuda.Ptr { return base + cuda.Ptr(int64(cell)*cellSize) }

func (p *program) stream(cell int) cuda.Stream { return p.streams[cell%users] }

// fill has the stream of a cell write it.
func (p *program) fill(cell int, pattern byte, n int64) {
	p.d.put(p.stream(cell), op{run: func() {
		memory := p.d.bytes(p.at(cell), n)
		for i := range memory {
			memory[i] = pattern + byte(i>>8)
		}
	}})
}

// check has the stream of a cell read it.
func (p *program) check(cell int, want tensor) {
	p.reads++
	p.d.put(p.stream(cell), op{run: func() {
		for i, b := range p.d.bytes(p.at(cell), want.size) {
			if b != want.pattern+byte(i>>8) {
				p.t.Fatalf("ticket %d of %d bytes: byte %d is %d, want %d", want.name, want.size, i, b, want.pattern+byte(i>>8))
			}
		}
	}})
}

// expected says whether a call that failed did so because it was to.
func (p *program) expected(err error) bool {
	p.t.Helper()
	if err != nil && !errors.Is(err, errInjected) {
		p.t.Fatal(err)
	}
	return err != nil
}

// insist makes a call until it is not one that is to fail.
func (p *program) insist(call func() error) {
	p.t.Helper()
	for p.expected(call()) {
	}
}

// send writes a tensor, copies it out, and overwrites its memory.
func (p *program) send() {
	cell := p.rng.IntN(cells)
	p.next++
	tensor := tensor{pattern: p.next, size: 1 + p.rng.Int64N(cellSize)}
	p.fill(cell, tensor.pattern, tensor.size)
	var err error
	tensor.name, err = p.e.Out(p.at(cell), tensor.size, p.stream(cell))
	var full *FullError
	if errors.As(err, &full) {
		p.full++
		if full.Asked != tensor.size || full.Live != p.held() || full.Largest >= full.Asked || full.Largest > full.Arena {
			p.t.Fatalf("%d bytes of %d are held, and asked %d: %v", p.held(), p.e.arena.size, tensor.size, err)
		}
		return
	}
	if p.expected(err) {
		return
	}
	p.insist(func() error { return p.e.Left(tensor.name, p.stream(cell)) })
	p.fill(cell, ^tensor.pattern, cellSize)
	p.out = append(p.out, tensor)
}

// fetch copies a tensor in, and reads it.
func (p *program) fetch() {
	if len(p.out) == 0 {
		return
	}
	i := p.rng.IntN(len(p.out))
	cell, t := p.rng.IntN(cells), p.out[i]
	if p.expected(p.e.In(t.name, p.at(cell), p.stream(cell))) {
		return
	}
	p.insist(func() error { return p.e.Ready(t.name, p.stream(cell)) })
	p.check(cell, t)
	p.fill(cell, 0xee, cellSize)
	if p.rng.IntN(2) == 0 {
		p.drop(i)
	}
}

func (p *program) drop(i int) {
	if err := p.e.Drop(p.out[i].name); err != nil {
		p.t.Fatal(err)
	}
	p.out = slices.Delete(p.out, i, i+1)
}

func (p *program) dropAny() {
	if len(p.out) > 0 {
		p.drop(p.rng.IntN(len(p.out)))
	}
}

func (p *program) held() (n int64) {
	for _, t := range p.out {
		n += t.size
	}
	return n
}

// ask looks at whether a copy out has passed.
func (p *program) ask() {
	if len(p.out) == 0 {
		return
	}
	t := p.out[p.rng.IntN(len(p.out))]
	copied, err := p.e.Copied(t.name)
	if p.expected(err) || !copied {
		return
	}
	k, err := p.e.find(t.name)
	if err != nil {
		p.t.Fatal(err)
	}
	memory := p.e.memory.Bytes()[p.e.arena.slots[k.slot].at:][:t.size]
	want := byte((t.size - 1) >> 8)
	if memory[0] != t.pattern || memory[t.size-1] != t.pattern+want {
		p.t.Fatalf("ticket %d was copied out, and the host has %d and %d", t.name, memory[0], memory[t.size-1])
	}
}

// step does one of the things that a program does, and has the device go on for a while.
func (p *program) step() {
	switch p.rng.IntN(8) {
	case 0, 1, 2:
		p.send()
	case 3, 4, 5:
		p.fetch()
	case 6:
		p.dropAny()
	default:
		p.ask()
		p.e.Expect(p.rng.Int64N(2*p.e.Stats().Arena + 1))
	}
	for range p.rng.IntN(11) {
		p.d.step()
	}
	if s := p.e.Stats(); s.Live != p.held() || s.Peak < s.Live || s.Pinned > s.Arena || s.Live > s.Pinned {
		p.t.Fatalf("%d bytes are held, the engine says %+v", p.held(), s)
	}
}

// finish drops everything, closes the engine, and checks that nothing is left of it.
func (p *program) finish() {
	p.d.fail = func(call) bool { return false }
	for len(p.out) > 0 {
		p.dropAny()
	}
	if s := p.e.Stats(); s.Live != 0 || p.e.arena.largest() != s.Arena {
		p.t.Fatalf("all was dropped: %+v, %d bytes free in one piece", s, p.e.arena.largest())
	}
	if err := p.e.Close(); err != nil {
		p.t.Fatal(err)
	}
	for p.d.step() {
	}
	for _, s := range p.streams {
		p.d.StreamDestroy(s)
	}
	if left := p.d.holds(); left != holdsNothing {
		p.t.Fatalf("the device still has %s", left)
	}
}

// cellSize is how much of the device a tensor may take, in bytes.
var cellSize = 6 * host.Page()

// small is room for a few tensors, in chunks that they do not fit into.
var small = Options{Budget: 20 * host.Page(), Chunk: 2 * host.Page()}

func TestContents(t *testing.T) {
	var full, reads, waits int
	for seed := range uint64(80) {
		o := small
		o.Timed = seed%2 == 0
		p := newProgram(t, seed, o)
		for range 200 {
			p.step()
		}
		if s := p.e.Stats(); o.Timed != (s.BusyOut > 0) {
			t.Errorf("timed: %v, and busy for %v", o.Timed, s.BusyOut)
		}
		full, reads, waits = full+p.full, reads+p.reads, waits+int(p.e.out.behind)
		p.finish()
		if len(p.lines) > 0 {
			t.Fatalf("logged: %q", p.lines)
		}
	}
	if full == 0 || reads == 0 || waits == 0 {
		t.Errorf("%d times full, %d tensors read, %d waits for readers: the test is weak", full, reads, waits)
	}
}

// TestFailures has calls fail, now and then or most of the time: contents survive, and nothing is lost.
func TestFailures(t *testing.T) {
	for seed := range uint64(8 * (calls + 1)) {
		o := small
		o.Timed = seed%2 == 0
		p := newProgram(t, seed, o)
		which, odds := call(seed%uint64(calls+1)), 2+p.rng.IntN(20)
		p.d.fail = func(c call) bool { return (c == which || which == calls) && p.rng.IntN(odds) == 0 }
		for range 200 {
			p.step()
		}
		p.finish()
		if len(p.lines) > 1 || len(p.lines) == 1 && !strings.Contains(p.lines[0], "injected") {
			t.Fatalf("logged: %q", p.lines)
		}
	}
}

func FuzzEngine(f *testing.F) {
	f.Add(uint64(1), uint64(0), uint8(100))
	f.Add(uint64(2), uint64(1<<transferLate|1<<follow), uint8(50))
	f.Fuzz(func(t *testing.T, seed, failing uint64, budget uint8) {
		p := newProgram(t, seed, Options{Budget: int64(1+budget%40) * host.Page(), Chunk: 3 * host.Page(), Timed: failing&1 == 0})
		p.d.fail = func(c call) bool { return failing>>c&1 == 1 && p.rng.IntN(4) == 0 }
		for range 150 {
			p.step()
		}
		p.finish()
	})
}

// TestPinningFails has the third chunk fail: what is pinned stays in use, and a line says so, once.
func TestPinningFails(t *testing.T) {
	p := newProgram(t, 1, small)
	chunks := 0
	p.d.fail = func(c call) bool {
		if c == hostRegister {
			chunks++
		}
		return c == hostRegister && chunks > 2
	}
	p.e.Expect(1 << 62)
	for range 500 {
		p.step()
	}
	s := p.e.Stats()
	if taken := resident(t, p.e.memory.Bytes()) * int64(host.Page()); taken != s.Pinned {
		t.Errorf("%d bytes are taken, %d pinned", taken, s.Pinned)
	}
	if chunks != 3 || s.Registrations != 2 || s.Pinned != 2*small.Chunk || s.Arena != s.Pinned || p.full == 0 || s.CopiesOut == 0 {
		t.Errorf("%d chunks were tried, %+v, %d times full", chunks, s, p.full)
	}
	want := fmt.Sprintf("%d bytes of host memory are pinned, and no more can be: injected", s.Pinned)
	if len(p.lines) != 1 || p.lines[0] != want {
		t.Errorf("logged: %q", p.lines)
	}
	p.finish()
}

// TestExpected takes memory ahead, in parts, and beyond the budget: none is pinned by that, and all of it is there.
func TestExpected(t *testing.T) {
	const pages = 40
	p := newProgram(t, 1, Options{Budget: pages * host.Page(), Chunk: 2 * host.Page()})
	for _, c := range []struct{ bytes, pages int64 }{{-1, 0}, {0, 0}, {1, 1}, {3 * host.Page(), 3}, {host.Page(), 3}, {1 << 62, pages}} {
		p.e.Expect(c.bytes)
		p.e.ahead.working.Wait()
		if taken := resident(t, p.e.memory.Bytes()); taken != c.pages || p.e.Stats().Pinned != 0 {
			t.Errorf("%d bytes expected: %d pages taken, want %d, and %d bytes pinned", c.bytes, taken, c.pages, p.e.Stats().Pinned)
		}
	}
	p.finish()
	p.e.Expect(1)
}

// resident counts the pages of memory that are taken.
func resident(t *testing.T, memory []byte) (pages int64) {
	seen := make([]byte, int64(len(memory))/host.Page())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), uintptr(len(memory)), uintptr(unsafe.Pointer(&seen[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, page := range seen {
		pages += int64(page & 1)
	}
	return pages
}

// TestNothingPinned has no memory pinned at all.
func TestNothingPinned(t *testing.T) {
	p := newProgram(t, 1, small)
	p.d.fail = func(c call) bool { return c == hostRegister }
	for range 2 {
		_, err := p.e.Out(base, 1000, p.streams[0])
		const want = "host memory is full: 1000 bytes asked, 0 of 0 bytes in use, 0 free in one piece"
		if err == nil || err.Error() != want {
			t.Errorf("gives %v", err)
		}
	}
	if len(p.lines) != 1 {
		t.Errorf("logged: %q", p.lines)
	}
	p.finish()
}

// TestSteady repeats a step of a training loop: from the second on nothing is pinned, whatever its order of requests.
func TestSteady(t *testing.T) {
	for seed := range uint64(8) {
		p := newProgram(t, seed, Options{Budget: 500 * host.Page(), Chunk: 2 * host.Page()})
		var first Stats
		for step := range 6 {
			p.rng = rand.New(rand.NewPCG(seed, 5)) // the same requests in each step
			for range 60 {
				p.send()
				if p.rng.IntN(3) == 0 {
					p.dropAny()
				}
			}
			for len(p.out) > 0 {
				p.fetch()
			}
			if step == 0 {
				first = p.e.Stats()
			}
		}
		if s := p.e.Stats(); s.Registrations != first.Registrations || s.Peak != first.Peak || p.full > 0 {
			t.Errorf("seed %d: %d chunks after the first step, then %d; peak %d, then %d; %d times full", seed, first.Registrations,
				s.Registrations, first.Peak, s.Peak, p.full)
		}
		p.finish()
	}
}

func TestOpenFails(t *testing.T) {
	for first := range 2 {
		d := newDevice(t, rand.New(rand.NewPCG(1, 1)), 0)
		n := 0
		d.fail = func(c call) bool { n++; return n > first }
		if _, err := Open(d, small); !errors.Is(err, errInjected) {
			t.Errorf("stream %d fails: %v", first, err)
		}
		d.fail = func(call) bool { return false }
		if first == 1 { // the other stream could not be destroyed
			continue
		}
		if left := d.holds(); left != holdsNothing {
			t.Errorf("stream %d fails: the device has %s", first, left)
		}
	}
	for _, budget := range []int64{-1, 0, host.Page() - 1} {
		if _, err := Open(newDevice(t, nil, 0), Options{Budget: budget}); !errors.Is(err, ErrBudget) {
			t.Errorf("a budget of %d bytes: %v", budget, err)
		}
	}
	if _, err := Open(newDevice(t, nil, 0), Options{Budget: 1 << 60}); err == nil {
		t.Error("a budget of more than there are addresses")
	}
}

// TestCloseFails: memory that the driver may still use is kept.
func TestCloseFails(t *testing.T) {
	for _, which := range []call{streamSynchronize, streamDestroy, hostUnregister} {
		p := newProgram(t, 1, small)
		p.send()
		memory := p.e.memory.Bytes()
		p.d.fail = func(c call) bool { return c == which }
		if err := p.e.Close(); !errors.Is(err, errInjected) {
			t.Errorf("call %d fails: %v", which, err)
		}
		memory[0] = 1 // is still there
	}
}
