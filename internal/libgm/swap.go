package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/swap/engine"
	"gm/internal/swap/host"
)

// swapper is what moves tensors of a device to the host and back.
type swapper struct {
	dev    *driver.Device
	engine *engine.Engine
	broken bool // it panicked: it is not called again
}

// swappers are those that are open. Each is guarded by a lock of its own, which C holds (swap.c).
var swappers [C.GM_DEVICES]*swapper

// openSwapper makes the swapper of a device. It works in the primary context, as PyTorch does, with a device of its own: what the
// allocator has open is behind another lock.
func (p *process) openSwapper(ordinal int, budget int64, timed bool) (*swapper, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadDriver(); err != nil {
		return nil, err
	}
	dev, err := p.library.Open(ordinal)
	if err != nil {
		return nil, err
	}
	node := -1
	if id, err := dev.PCIBusID(); err == nil {
		node = host.Node(id)
	}
	allowance := p.allowance
	if allowance == nil {
		allowance = engine.NewAllowance(budget)
	}
	e, err := engine.Open(dev, engine.Options{
		Budget: budget, Node: node, Timed: timed, InPlace: dev.HostPointers(), Allowance: allowance,
		Log: func(line string) { p.log.printf("device %d: swap: %s", ordinal, line) },
	})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	p.allowance = allowance
	p.swappers++
	return &swapper{dev: dev, engine: e}, nil
}

// closeSwapper closes a swapper. When it was the last one the next may pin as much as it is told.
func (p *process) closeSwapper(s *swapper) error {
	err := errors.Join(s.engine.Close(), s.dev.Close())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swappers--; p.swappers == 0 {
		p.allowance = nil
	}
	return err
}

// swapper returns that of a device.
func (p *process) swapper(device C.int) (*swapper, error) {
	s := swappers[device]
	if s == nil {
		return nil, fmt.Errorf("no swapper is open for device %d", device)
	}
	if s.broken {
		return nil, fmt.Errorf("the swapper of device %d failed, and is not used any more", device)
	}
	return s, nil
}

// swap makes a call of a device's swapper. It returns 0, or -1 where the call failed; then its text is kept for this thread.
func swap(device C.int, call func(e *engine.Engine) error) (result C.int) {
	defer func() {
		if r := recover(); r != nil {
			result = swapBroke(device, r)
		}
	}()
	s, err := self.swapper(device)
	if err == nil {
		err = call(s.engine)
	}
	if err != nil {
		fail(err.Error())
		return -1
	}
	return 0
}

// swapBroke notes that the swapper of a device panicked.
func swapBroke(device C.int, reason any) C.int {
	if s := swappers[device]; s != nil {
		s.broken = true
	}
	self.log.printf("device %d: swap: BUG: %v; from now on it refuses all calls\n%s", device, reason, debug.Stack())
	fail(fmt.Sprint("BUG: ", reason))
	return -1
}

// What C calls (swap.c), with the swapper's lock of the device held. None of them panics.

//export go_swap_open
func go_swap_open(device C.int, budget C.uint64_t, timed C.bool) (result C.int) {
	defer func() {
		if r := recover(); r != nil {
			result = swapBroke(device, r)
		}
	}()
	if swappers[device] != nil {
		fail(fmt.Sprintf("a swapper is open already for device %d", device))
		return -1
	}
	s, err := self.openSwapper(int(device), int64(min(budget, math.MaxInt64)), bool(timed))
	if err != nil {
		fail(fmt.Sprintf("open the swapper of device %d: %v", device, err))
		return -1
	}
	swappers[device] = s
	return 0
}

//export go_swap_out
func go_swap_out(device C.int, from, n, stream C.uint64_t) (name C.int64_t) {
	swap(device, func(e *engine.Engine) error {
		t, err := e.Out(cuda.Ptr(from), int64(min(n, math.MaxInt64)), cuda.Stream(stream))
		name = C.int64_t(t)
		return err
	})
	return name
}

//export go_swap_expect
func go_swap_expect(device C.int, n C.uint64_t) C.int {
	return swap(device, func(e *engine.Engine) error {
		e.Expect(int64(min(n, math.MaxInt64)))
		return nil
	})
}

//export go_swap_left
func go_swap_left(device C.int, name C.int64_t, stream C.uint64_t) C.int {
	return swap(device, func(e *engine.Engine) error { return e.Left(engine.Ticket(name), cuda.Stream(stream)) })
}

//export go_swap_in
func go_swap_in(device C.int, name C.int64_t, to, stream C.uint64_t) C.int {
	return swap(device, func(e *engine.Engine) error {
		return e.In(engine.Ticket(name), cuda.Ptr(to), cuda.Stream(stream))
	})
}

//export go_swap_ready
func go_swap_ready(device C.int, name C.int64_t, stream C.uint64_t) C.int {
	return swap(device, func(e *engine.Engine) error { return e.Ready(engine.Ticket(name), cuda.Stream(stream)) })
}

//export go_swap_drop
func go_swap_drop(device C.int, name C.int64_t) C.int {
	return swap(device, func(e *engine.Engine) error { return e.Drop(engine.Ticket(name)) })
}

//export go_swap_copied
func go_swap_copied(device C.int, name C.int64_t) C.int {
	var copied bool
	result := swap(device, func(e *engine.Engine) (err error) {
		copied, err = e.Copied(engine.Ticket(name))
		return err
	})
	if copied {
		return 1
	}
	return result
}

//export go_swap_words
func go_swap_words(device C.int, to, from, pitch, word, n, stream C.uint64_t) C.int {
	return swap(device, func(*engine.Engine) error {
		return swappers[device].dev.Memcpy2DAsync(cuda.Ptr(to), cuda.Ptr(from), int64(pitch), int64(word), int64(n), cuda.Stream(stream))
	})
}

//export go_swap_borrow
func go_swap_borrow(device C.int, n, stream C.uint64_t) (p C.uint64_t) {
	swap(device, func(e *engine.Engine) error {
		begin, err := e.Borrow(int64(min(n, math.MaxInt64)), cuda.Stream(stream))
		p = C.uint64_t(begin)
		return err
	})
	return p
}

//export go_swap_borrowed
func go_swap_borrowed(device C.int, p C.uint64_t, begin, size *C.uint64_t) (known C.bool) {
	if swappers[device] == nil {
		return false
	}
	swap(device, func(e *engine.Engine) error {
		at, n, ok := e.Borrowed(cuda.Ptr(p))
		known, *begin, *size = C.bool(ok), C.uint64_t(at), C.uint64_t(n)
		return nil
	})
	return known
}

//export go_swap_use
func go_swap_use(device C.int, p, stream C.uint64_t) {
	swap(device, func(e *engine.Engine) error { e.Use(cuda.Ptr(p), cuda.Stream(stream)); return nil })
}

//export go_swap_return
func go_swap_return(device C.int, p C.uint64_t) {
	swap(device, func(e *engine.Engine) error { e.Return(cuda.Ptr(p)); return nil })
}

//export go_swap_get_stats
func go_swap_get_stats(device C.int, to *C.struct_gm_swap_stats) C.int {
	return swap(device, func(e *engine.Engine) error {
		s := e.Stats()
		*to = C.struct_gm_swap_stats{
			copies_out: C.int64_t(s.CopiesOut), copies_in: C.int64_t(s.CopiesIn),
			bytes_out: C.int64_t(s.BytesOut), bytes_in: C.int64_t(s.BytesIn),
			host_bytes: C.int64_t(s.Live), host_peak: C.int64_t(s.Peak), arena_bytes: C.int64_t(s.Arena),
			pinned_bytes: C.int64_t(s.Pinned), registrations: C.int64_t(s.Registrations), pin_ns: C.int64_t(s.Pinning),
			out_busy_ns: C.int64_t(s.BusyOut), in_busy_ns: C.int64_t(s.BusyIn),
			borrows: C.int64_t(s.Borrows), borrowed_bytes: C.int64_t(s.Borrowed), borrowed_peak: C.int64_t(s.BorrowedPeak),
		}
		return nil
	})
}

//export go_swap_close
func go_swap_close(device C.int) (result C.int) {
	defer func() {
		if r := recover(); r != nil {
			result = swapBroke(device, r)
		}
	}()
	s, err := self.swapper(device)
	if err == nil {
		swappers[device] = nil
		err = self.closeSwapper(s)
	}
	if err == nil {
		return 0
	}
	fail(err.Error())
	if s != nil && !errors.Is(err, driver.ErrShutdown) {
		self.log.printf("device %d: swap: %v", device, err)
	}
	return -1
}

//export go_swap_finish
func go_swap_finish() { self.log.settle() }
