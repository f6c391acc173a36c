package main

// #include <stdlib.h>
// #include "libgm.h"
import "C"

import (
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/swap/host"
	"gm/internal/swap/park"
	"gm/internal/swap/server/wire"
)

const (
	// beat is how often the server is told how this process is, and tried where there is none.
	beat = 500 * time.Millisecond
	// restTime is how long the work of the devices may take to end before this process sleeps.
	restTime = time.Minute
	// patience is how long a wake waits for each piece of memory that another job is leaving.
	patience = 2 * time.Second
	// lonely is how long a request for room waits for a server that has ended to come back.
	lonely = 30 * time.Second
	// stuck is how long the goroutine may do one thing before a thread that waits for room gives up: it may wait for a lock of that thread.
	stuck = 2 * time.Minute
)

// served is this process as the memory server knows it. One goroutine, in a thread whose calls pass the gate, does all that follows. The
// others only tell it of events.
type served struct {
	process *process
	path    string
	wanted  chan struct{}     // a thread waits for memory that is away
	asked   chan *roomRequest // a thread waits for room
	heard   chan heard
	rounds  atomic.Uint64 // things that the goroutine has done

	mu      sync.Mutex // held while it works, and for good once the process ends
	devices []servedDevice
	helpers map[int]*driver.Device // those of the links that this process does not use otherwise

	conn    *wire.Conn // nil while there is no server
	asleep  bool
	waiting bool // for memory that is away
	rooms   []*roomRequest
	seq     uint64
	calls   uint64 // of the program at the last beat
	active  time.Time
	passed  int // addresses that the program had passed on at the last look
}

type servedDevice struct {
	*park.Device
	ordinal int
	bus     [16]byte
}

// heard is what came over a connection: a message, or its end.
type heard struct {
	conn    *wire.Conn
	message wire.Message
	err     error
}

// roomRequest is a request of a thread for room on a card.
type roomRequest struct {
	seq    uint64
	card   wire.Card
	since  time.Time
	answer chan bool
}

// startServed returns nil unless there is to be a server. Without the gate, which gmswap run and gmstitch run preload, nothing may sleep.
func startServed(p *process) *served {
	if p.settings.server == "" || !bool(C.gm_find_gate()) {
		return nil
	}
	s := &served{
		process: p, path: p.settings.server, wanted: make(chan struct{}, 1), asked: make(chan *roomRequest), heard: make(chan heard),
		active: time.Now(), helpers: map[int]*driver.Device{},
	}
	s.connect()
	go s.watchGate()
	go s.work()
	C.gm_served = true
	return s
}

// device returns what serves a device.
func (s *served) device(dev *driver.Device) cuda.Device {
	if s == nil {
		return dev
	}
	bus, err := dev.PCIBusID()
	if err != nil {
		bus = "" // of a node that is not known
	}
	return park.New(dev, host.Node(bus), s.ask)
}

// add begins to serve a device.
func (s *served) add(g *gpu) {
	parked, ok := g.meter.Device.(*park.Device)
	if !ok {
		return
	}
	bus, err := parked.PCIBusID()
	if err != nil {
		g.complain("ask for the address of the device", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices = append(s.devices, servedDevice{parked, g.ordinal, wire.BusOf(bus)})
	s.link()
}

// linked returns the ordinals of the devices whose links are used on the way to the host and back, beside those that this process has open.
func (s *served) linked() (all []int) {
	if s == nil {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.gm_pass_gate(true) // or a context for which there is no room would be waited for, by who needs this lock
	defer C.gm_pass_gate(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ordinal := range s.process.settings.links {
		if s.helper(ordinal) != nil {
			all = append(all, ordinal)
		}
	}
	return all
}

// link has each device use the links of the others.
func (s *served) link() {
	for i := range s.devices {
		d := s.devices[i]
		var others []*driver.Device
		for j := range s.devices {
			if d.Reaches(s.devices[j].ordinal) {
				others = append(others, s.devices[j].Device.Device)
			}
		}
		for ordinal, helper := range s.helpers {
			used := slices.ContainsFunc(s.devices, func(other servedDevice) bool { return other.ordinal == ordinal })
			if !used && helper != nil && d.Reaches(ordinal) {
				others = append(others, helper)
			}
		}
		d.Help(others)
	}
}

// helper returns a device that this process has for its link alone, nil if there is none.
func (s *served) helper(ordinal int) *driver.Device {
	dev, known := s.helpers[ordinal]
	if known {
		return dev
	}
	dev, err := s.process.library.Open(ordinal)
	if err != nil {
		s.process.log.printf("the link of device %d is not used: %v", ordinal, err)
		dev = nil
	}
	s.helpers[ordinal] = dev
	return dev
}

// ask has memory come back. It does not wait.
func (s *served) ask() {
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// watchGate asks for memory when a thread finds the gate closed.
func (s *served) watchGate() {
	for seen := C.uint32_t(0); ; {
		seen = C.gm_await_gate(seen)
		s.ask()
	}
}

// stop ends all work, at the end of the process.
func (s *served) stop() {
	if s == nil {
		return
	}
	for end := time.Now().Add(time.Second); !s.mu.TryLock() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// work does all that happens.
func (s *served) work() {
	runtime.LockOSThread()
	C.gm_pass_gate(true)
	t := time.NewTicker(beat)
	for {
		var act func()
		select {
		case h := <-s.heard:
			act = func() { s.hear(&h) }
		case <-s.wanted:
			act = s.want
		case r := <-s.asked:
			act = func() { s.request(r) }
		case <-t.C:
			act = s.beat
		}
		s.guarded(act)
		s.rounds.Add(1)
	}
}

// guarded does one thing. A panic leaves the process as it would be without a server, as far as memory is here.
func (s *served) guarded(act func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			s.process.log.printf("memory server: BUG: %v\n%s", r, debug.Stack())
		}
	}()
	act()
}

// hear does what the server says.
func (s *served) hear(h *heard) {
	if h.conn != s.conn {
		return
	}
	switch m := &h.message; {
	case h.err != nil:
		s.disconnect()
		s.process.log.printf("the memory server has ended; this process goes on by itself")
		if s.waiting {
			s.want()
		}
	case m.Kind == wire.Sleep:
		began := time.Now()
		moved, err := s.sleep(m.Amount, m.Pinned)
		s.done(m.Seq, moved, time.Since(began), err)
	case m.Kind == wire.Wake:
		began, away := time.Now(), s.away()
		err := s.wakeIn(time.Duration(m.Amount) * patience)
		s.done(m.Seq, away, time.Since(began), err)
	case m.Kind == wire.Prepare:
		s.prepare(m.Pinned)
	case m.Kind == wire.Room:
		s.answer(m.Seq, m.Amount == 1)
	}
}

// prepare pins memory for a later sleep beside all else, until the program calls the driver again.
func (s *served) prepare(pinned int64) {
	devices, calls := slices.Clone(s.devices), C.gm_gated_calls()
	go func() {
		for i := range devices {
			devices[i].Prepare(pinned, func() bool { return C.gm_gated_calls() == calls })
		}
	}()
}

// want has memory come back: by the server, or without one.
func (s *served) want() {
	if !s.asleep {
		return
	}
	s.waiting = true
	if s.conn == nil {
		_ = s.wake() // tried again at the next beat
		return
	}
	s.send(&wire.Message{Kind: wire.WantWake})
}

// beat is for what time alone changes.
func (s *served) beat() {
	if calls := uint64(C.gm_gated_calls()); calls != s.calls {
		s.calls, s.active = calls, time.Now()
	}
	if s.conn == nil && s.connect() {
		s.process.log.printf("connected to the memory server at %s", s.path)
	}
	if s.conn != nil {
		s.report()
		return
	}
	if s.waiting {
		s.want()
	}
	for _, r := range slices.Clone(s.rooms) {
		if time.Since(r.since) > lonely {
			s.answer(r.seq, false)
		}
	}
}

// sleep moves need bytes of each device to the host, or all if that is 0, once the program's calls and the work of the devices have ended.
func (s *served) sleep(need, pinned int64) (moved int64, err error) {
	if need == 0 {
		need = math.MaxInt64
	}
	if !s.asleep {
		unlock := s.lock()
		defer unlock()
		if err := s.calm(); err != nil {
			return 0, err
		}
	}
	for i := range s.devices {
		n, failed := s.devices[i].Sleep(need, pinned)
		moved, err = moved+n, errors.Join(err, failed)
	}
	s.asleep = s.asleep || moved > 0 || err != nil
	if err != nil || !s.asleep {
		err = errors.Join(err, s.wake())
	}
	return moved, err
}

// lock takes the locks of all devices, so that no request or free is under way.
func (s *served) lock() (unlock func()) {
	var locked []C.int
	for i := range C.int(C.GM_DEVICES) {
		if bool(C.gm_device_open(i)) {
			C.gm_lock(i)
			locked = append(locked, i)
		}
	}
	return func() {
		for _, i := range slices.Backward(locked) {
			C.gm_unlock(i)
		}
	}
}

// calm closes the gate, waits for the work of the devices, and returns cached memory. After an error the gate is open.
func (s *served) calm() error {
	if why := C.gm_set_gate(false, C.int(restTime/time.Millisecond)); why != nil {
		return errors.New(C.GoString(why))
	}
	err := s.synchronize()
	if err == nil {
		err = s.sharing()
	}
	if err != nil {
		C.gm_set_gate(true, 0)
		return err
	}
	for i := range s.devices {
		if g := s.process.gpus[s.devices[i].ordinal].Load(); g != nil {
			g.empty()
		}
	}
	return nil
}

// synchronize waits for the work of all devices, which may never end where it waits for other processes.
func (s *served) synchronize() error {
	ended := make(chan error, 1)
	devices := slices.Clone(s.devices)
	go func() {
		var errs error
		for i := range devices {
			errs = errors.Join(errs, devices[i].Synchronize())
		}
		ended <- errs
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(restTime):
		return errors.New("the work of the GPU did not end in time")
	}
}

// away returns the bytes that are on the host.
func (s *served) away() (bytes int64) {
	for i := range s.devices {
		bytes += s.devices[i].Usage().Away
	}
	return bytes
}

// wake brings all memory back and opens the gate.
func (s *served) wake() error { return s.wakeIn(0) }

// wakeIn is wake that waits for each piece of memory as long as patience.
func (s *served) wakeIn(patience time.Duration) error {
	for i := range s.devices {
		if err := s.devices[i].Wake(patience); err != nil {
			return err
		}
	}
	s.asleep, s.waiting = false, false
	s.active = time.Now()
	C.gm_set_gate(true, 0)
	return nil
}
