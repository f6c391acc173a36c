package link

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"gm/internal/cuda"
)

var errInjected = errors.New("injected")

// Figures of the machine: what a copy costs before it moves anything, and bytes per second then.
const (
	latency    = 2e-6
	outRate    = 50e9
	inRate     = 60e9
	bothRate   = 40e9 // of each direction when both are busy
	workRate   = 1000e9
	busyWork   = 800e9 // when a direction is busy, too
	othersPart = 0.5   // of a direction's rate that is left when another GPU copies
)

// machine is some GPUs whose copies share what there is between them. Time passes when it is waited for.
type machine struct {
	t    testing.TB
	now  float64 // seconds
	gpus []*gpu
	fail func(gpu int, call string) bool
}

// gpu is one of them.
type gpu struct {
	*machine
	ordinal    int
	streams    map[cuda.Stream][]*task
	events     map[cuda.Event]*float64 // when it passed; negative before that
	memory     map[cuda.Ptr]int64
	registered int
	last       int64
}

type kind int

const (
	outCopy kind = iota
	inCopy
	withinCopy
	record
	wait
)

// task is work in a stream.
type task struct {
	kind    kind
	latency float64 // that is left, seconds
	bytes   float64 // that are left
	at      *float64
}

func newMachine(t testing.TB, gpus int) *machine {
	m := &machine{t: t, fail: func(int, string) bool { return false }}
	for i := range gpus {
		m.gpus = append(m.gpus, &gpu{
			machine: m, ordinal: i, streams: map[cuda.Stream][]*task{}, events: map[cuda.Event]*float64{}, memory: map[cuda.Ptr]int64{},
		})
	}
	return m
}

func (m *machine) devices() (all []Device) {
	for _, g := range m.gpus {
		all = append(all, g)
	}
	return all
}

// settle does what takes no time, and returns the copies that go on then.
func (m *machine) settle() (running map[*task]*gpu) {
	for again := true; again; {
		again = false
		running = map[*task]*gpu{}
		for _, g := range m.gpus {
			for s, queue := range g.streams {
				if len(queue) == 0 {
					continue
				}
				switch t := queue[0]; {
				case t.kind == record:
					*t.at = m.now
				case t.kind == wait && *t.at >= 0, t.kind < record && t.bytes <= 0:
				case t.kind < record:
					running[t] = g
					continue
				default:
					continue
				}
				g.streams[s] = queue[1:]
				again = true
			}
		}
	}
	return running
}

// rate returns the bytes per second of a copy among those that go on.
func rate(t *task, g *gpu, running map[*task]*gpu) float64 {
	busy := map[kind]bool{}
	others := false
	for other, of := range running {
		if of == g {
			busy[other.kind] = true
		} else {
			others = others || other.kind != withinCopy
		}
	}
	r := map[kind]float64{outCopy: outRate, inCopy: inRate, withinCopy: workRate}[t.kind]
	switch {
	case t.kind == withinCopy && (busy[outCopy] || busy[inCopy]):
		return busyWork
	case t.kind == withinCopy:
		return r
	case busy[outCopy] && busy[inCopy]:
		r = bothRate
	}
	if others {
		r *= othersPart
	}
	return r
}

// step has time pass until a copy goes into its next phase. It says whether there was one.
func (m *machine) step() bool {
	running := m.settle()
	if len(running) == 0 {
		return false
	}
	next := math.Inf(1)
	for t, g := range running {
		if t.latency > 0 {
			next = min(next, t.latency)
		} else {
			next = min(next, t.bytes/rate(t, g, running))
		}
	}
	moved := map[*task]float64{}
	for t, g := range running {
		if t.latency <= 0 {
			moved[t] = next * rate(t, g, running)
		}
	}
	m.now += next
	for t := range running {
		if n, ok := moved[t]; ok {
			if t.bytes -= n; t.bytes < 1e-3 {
				t.bytes = 0
			}
		} else if t.latency -= next; t.latency < 1e-12 {
			t.latency = 0
		}
	}
	return true
}

func (g *gpu) err(call string) error {
	if g.fail(g.ordinal, call) {
		return errInjected
	}
	return nil
}

func (g *gpu) next() int64 { g.last++; return g.last }

func (g *gpu) put(s cuda.Stream, t *task) {
	if _, ok := g.streams[s]; !ok {
		g.t.Fatalf("stream %d is none", s)
	}
	g.streams[s] = append(g.streams[s], t)
}

func (g *gpu) Name() string { return "machine" }

func (g *gpu) PCIBusID() (string, error) {
	return fmt.Sprintf("ffff:%02x:00.0", g.ordinal), g.err("PCIBusID")
}

func (g *gpu) MemAlloc(size int64) (cuda.Ptr, error) {
	if err := g.err("MemAlloc"); err != nil {
		return 0, err
	}
	p := cuda.Ptr(g.next()) << 40
	g.memory[p] = size
	return p, nil
}

func (g *gpu) MemFree(p cuda.Ptr) error {
	delete(g.memory, p)
	return g.err("MemFree")
}

func (g *gpu) MemInfo() (free, total int64, err error) { return 141 << 30, 141 << 30, g.err("MemInfo") }

func (g *gpu) HostRegister([]byte) error {
	if err := g.err("HostRegister"); err != nil {
		return err
	}
	g.registered++
	return nil
}

func (g *gpu) HostUnregister([]byte) error {
	g.registered--
	return g.err("HostUnregister")
}

func (g *gpu) StreamCreate() (cuda.Stream, error) {
	if err := g.err("StreamCreate"); err != nil {
		return 0, err
	}
	s := cuda.Stream(g.next())
	g.streams[s] = nil
	return s, nil
}

func (g *gpu) StreamDestroy(s cuda.Stream) error {
	delete(g.streams, s)
	return g.err("StreamDestroy")
}

func (g *gpu) StreamSynchronize(s cuda.Stream) error {
	for len(g.streams[s]) > 0 {
		if !g.step() && len(g.streams[s]) > 0 {
			g.t.Fatalf("stream %d can never go on", s)
		}
	}
	return g.err("StreamSynchronize")
}

func (g *gpu) StreamWaitEvent(s cuda.Stream, e cuda.Event) error {
	if err := g.err("StreamWaitEvent"); err != nil {
		return err
	}
	g.put(s, &task{kind: wait, at: g.events[e]})
	return nil
}

// event records a new event.
func (g *gpu) event(s cuda.Stream) cuda.Event {
	e, at := cuda.Event(g.next()), -1.0
	g.events[e] = &at
	g.put(s, &task{kind: record, at: &at})
	return e
}

func (g *gpu) EventRecord(s cuda.Stream) (cuda.Event, error) {
	if err := g.err("EventRecord"); err != nil {
		return 0, err
	}
	return g.event(s), nil
}

func (g *gpu) EventDestroy(e cuda.Event) error {
	delete(g.events, e)
	return g.err("EventDestroy")
}

func (g *gpu) copy(call string, k kind, size int64, p cuda.Ptr, s cuda.Stream) error {
	if err := g.err(call); err != nil {
		return err
	}
	if g.memory[p] < size {
		g.t.Fatalf("%s of %d bytes at %#x, where there are %d", call, size, p, g.memory[p])
	}
	g.put(s, &task{kind: k, latency: latency, bytes: float64(size)})
	return nil
}

func (g *gpu) MemcpyDtoHAsync(dst []byte, src cuda.Ptr, s cuda.Stream) error {
	return g.copy("MemcpyDtoHAsync", outCopy, int64(len(dst)), src, s)
}

func (g *gpu) MemcpyHtoDAsync(dst cuda.Ptr, src []byte, s cuda.Stream) error {
	return g.copy("MemcpyHtoDAsync", inCopy, int64(len(src)), dst, s)
}

func (g *gpu) MemcpyDtoDAsync(dst, src cuda.Ptr, size int64, s cuda.Stream) error {
	return errors.Join(g.copy("MemcpyDtoDAsync", withinCopy, size, dst, s))
}

func (g *gpu) IntervalBegin(s cuda.Stream) (cuda.Interval, error) {
	if err := g.err("IntervalBegin"); err != nil {
		return cuda.Interval{}, err
	}
	at := -1.0
	i := cuda.Interval{Begin: g.event(s), End: cuda.Event(g.next())}
	g.events[i.End] = &at
	return i, nil
}

func (g *gpu) IntervalEnd(i cuda.Interval, s cuda.Stream) error {
	if err := g.err("IntervalEnd"); err != nil {
		g.IntervalDestroy(i)
		return err
	}
	g.put(s, &task{kind: record, at: g.events[i.End]})
	return nil
}

func (g *gpu) Elapsed(i cuda.Interval) (time.Duration, bool, error) {
	if err := g.err("Elapsed"); err != nil {
		return 0, false, err
	}
	begin, end := *g.events[i.Begin], *g.events[i.End]
	return time.Duration((end - begin) * 1e9), end >= 0, nil
}

func (g *gpu) IntervalDestroy(i cuda.Interval) {
	delete(g.events, i.Begin)
	delete(g.events, i.End)
}

// holds says what of a measurement's a GPU still has.
func (g *gpu) holds() string {
	return fmt.Sprintf("%d streams, %d pieces of memory, %d of the host", len(g.streams), len(g.memory), g.registered)
}

const holdsNothing = "0 streams, 0 pieces of memory, 0 of the host"
