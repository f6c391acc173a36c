package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"gm/internal/cuda"
	"gm/internal/swap/park"
	"gm/internal/swap/server/wire"
)

// connect connects to the server, if there is one, and tells it what waits.
func (s *served) connect() bool {
	conn, err := wire.Dial(s.path)
	if err != nil {
		return false
	}
	hello := s.message(wire.Hello)
	hello.SetName(s.process.settings.name)
	welcome := wire.Message{}
	if err = errors.Join(conn.Expect(2*time.Second), conn.Send(&hello)); err == nil {
		welcome, err = conn.Receive()
	}
	if err == nil && welcome.Kind != wire.Welcome {
		s.process.log.printf("the memory server at %s refuses this process: %s", s.path, welcome.TextText())
		err = errors.New("refused")
	}
	if err = errors.Join(err, conn.Expect(0)); err != nil {
		_ = conn.Close() // nothing was lost
		return false
	}
	s.conn = conn
	C.gm_server_socket = C.int(conn.FD())
	s.bound(welcome.Amount)
	go s.receive(conn)
	if s.waiting {
		s.send(&wire.Message{Kind: wire.WantWake})
	}
	for _, r := range s.rooms {
		s.sendRoom(r)
	}
	return true
}

// receive passes on what comes over a connection.
func (s *served) receive(conn *wire.Conn) {
	for {
		m, err := conn.Receive()
		s.heard <- heard{conn, m, err}
		if err != nil {
			return
		}
	}
}

// disconnect ends the connection, whose receiver has returned.
func (s *served) disconnect() {
	C.gm_server_socket = -1
	_ = s.conn.Close() // nothing was lost
	s.conn = nil
}

// bound keeps to the server's quota, beside the limit of the run.
func (s *served) bound(quota int64) {
	if quota == 0 {
		return
	}
	settings := &s.process.settings
	if settings.limit == 0 || quota < settings.limit {
		settings.limit = quota
	}
	if s.asleep { // its threads may hold locks until it is awake
		return
	}
	for i := range s.devices {
		s.process.with(s.devices[i].ordinal, func(g *gpu) { g.meter.setLimit(settings.limit) })
	}
}

// send sends a message, or hangs up: the receiver notices.
func (s *served) send(m *wire.Message) {
	if err := s.conn.Send(m); err != nil {
		s.conn.HangUp()
	}
}

// message returns a message that says how this process is.
func (s *served) message(kind wire.Kind) wire.Message {
	m := wire.Message{Kind: kind, Idle: int64(time.Since(s.active))}
	if s.asleep {
		m.State = wire.Asleep
	}
	var cards []wire.Card
	for i := range s.devices {
		d := &s.devices[i]
		u := d.Usage()
		free, total, err := d.Device.Device.MemInfo() // of the driver: it does not wait. After Usage: what is freed between is in both, not in none
		if err != nil {
			continue
		}
		m.Pinned += u.Pinned
		cards = append(cards, wire.Card{Bus: d.bus, Total: total, Free: free, Here: u.Here, Away: u.Away})
	}
	m.SetCards(cards)
	return m
}

// report tells the server how this process is.
func (s *served) report() {
	m := s.message(wire.Report)
	if err := s.sharing(); err != nil {
		m.SetText(err.Error())
	}
	s.send(&m)
}

// done answers an order.
func (s *served) done(seq uint64, moved int64, took time.Duration, err error) {
	m := s.message(wire.Done)
	m.Seq, m.Amount, m.Took = seq, moved, int64(took)
	if err != nil {
		m.SetText(err.Error())
	}
	s.send(&m)
}

// sharing returns why this process cannot sleep: others use its memory, and would not see what comes back.
func (s *served) sharing() error {
	var addresses []uint64
	if n := int(C.gm_passed_on(nil, 0)); n != s.passed {
		addresses = make([]uint64, n)
		known := int(C.gm_passed_on((*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(addresses))), C.size_t(n)))
		addresses = slices.DeleteFunc(addresses[:min(n, known)], func(a uint64) bool { return a == 0 })
		if len(addresses) < n {
			return fmt.Errorf("it has passed on its memory %d times: more than are kept account of", n)
		}
		s.passed = n
	}
	var bytes int64
	for i := range s.devices {
		bytes += s.devices[i].Passed(addresses)
	}
	if bytes > 0 {
		return fmt.Errorf("%d bytes of its memory are shared: with other processes, or registered with NCCL or a network card", bytes)
	}
	return nil
}

// request passes a request for room on to the server.
func (s *served) request(r *roomRequest) {
	s.seq++
	r.seq = s.seq
	s.rooms = append(s.rooms, r)
	if s.conn != nil {
		s.report() // what is free
		s.sendRoom(r)
	}
}

func (s *served) sendRoom(r *roomRequest) {
	m := wire.Message{Kind: wire.WantRoom, Seq: r.seq}
	m.SetCards([]wire.Card{r.card})
	s.send(&m)
}

// answer ends a request for room.
func (s *served) answer(seq uint64, yes bool) {
	for _, r := range s.rooms {
		if r.seq == seq {
			r.answer <- yes
		}
	}
	s.rooms = slices.DeleteFunc(s.rooms, func(r *roomRequest) bool { return r.seq == seq })
}

// granted waits for the answer to a request for room.
func (s *served) granted(r *roomRequest) bool {
	t, asked, rounds := time.NewTicker(stuck), s.asked, s.rounds.Load()
	defer t.Stop()
	for {
		select {
		case asked <- r:
			asked = nil
		case yes := <-r.answer:
			return yes
		case <-t.C:
			before := rounds
			if rounds = s.rounds.Load(); rounds == before {
				return false
			}
		}
	}
}

// room waits until the server has made room for a request that found none, and says whether it is worth trying again.
func (s *served) room(ordinal int, size int64) C.enum_gm_room {
	g := s.process.gpus[ordinal].Load()
	if g == nil { // it has made memory of a key alone
		return C.GM_ROOM_NONE
	}
	var left int64
	s.process.with(ordinal, func(g *gpu) { left = g.meter.limit - g.meter.reserved() })
	free, total, err := g.meter.Device.MemInfo()
	if err != nil || size > left {
		return C.GM_ROOM_NONE
	}
	// What may be taken beyond a request: by the allocator, in segments, and by the driver for code that is loaded at its first launch.
	beyond := max(32<<20, total/128)
	need := (size+cuda.Granularity-1)/cuda.Granularity*cuda.Granularity + beyond
	if free >= need {
		return C.GM_ROOM_THERE
	}
	r := &roomRequest{since: time.Now(), answer: make(chan bool, 1), card: wire.Card{Free: free, Away: need - free}}
	s.mu.Lock()
	for i := range s.devices {
		if s.devices[i].ordinal == ordinal {
			r.card.Bus = s.devices[i].bus
		}
	}
	s.mu.Unlock()
	if s.granted(r) {
		return C.GM_ROOM_MADE
	}
	return C.GM_ROOM_NONE
}

//export go_ask_room
func go_ask_room(device C.int, size C.size_t) (answer C.int) {
	defer guard(device)
	return C.int(self.served.room(int(device), int64(size)))
}

// cudaRoom is what is asked for where CUDA finds no room for what it takes by itself, in bytes: what a context takes on an H100 or H200,
// 527 MiB, and some for code.
const cudaRoom = 640 << 20

// roomForCUDA waits until the server has made room for bytes and for what CUDA takes on a device by itself, and says whether that is worth
// trying. The caller may have the lock of the process, as a device that is being opened has a context made.
func (p *process) roomForCUDA(device int, bytes int64) bool {
	if p.serving.Load() == nil && p.mu.TryLock() {
		err := p.loadDriver()
		p.mu.Unlock()
		if err != nil {
			return false
		}
	}
	s := p.serving.Load()
	if s == nil {
		return false
	}
	bus, err := p.library.PCIBusID(device)
	if err != nil {
		return false
	}
	var free int64
	if g := p.gpus[device].Load(); g != nil { // else there is no context to ask for it
		if parked, ok := g.meter.Device.(*park.Device); ok { // which would wait until its memory is back
			var total int64
			if free, total, err = parked.Device.MemInfo(); err != nil || bytes > total-cudaRoom {
				return false
			}
		}
	}
	r := &roomRequest{since: time.Now(), answer: make(chan bool, 1)}
	r.card = wire.Card{Bus: wire.BusOf(bus), Free: free, Away: max(cudaRoom+bytes-free, cuda.Granularity)}
	return s.granted(r)
}

//export go_room_for_cuda
func go_room_for_cuda(device C.int, bytes C.size_t) (again C.bool) {
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("memory server: BUG: %v\n%s", r, debug.Stack())
		}
	}()
	if device >= C.GM_DEVICES || bytes > math.MaxInt64/2 {
		return false
	}
	return C.bool(self.roomForCUDA(int(device), int64(bytes)))
}
