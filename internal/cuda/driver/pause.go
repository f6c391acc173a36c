package driver

// #include "driver.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// longestPause is how long copies pause at most. A call that takes longer may be one that waits for them.
	longestPause = 50 * time.Millisecond
	// mostExpired is how many calls may take longer before none pauses any more.
	mostExpired = 8

	pausePart = C.GM_PAUSE_PART // bytes
)

// pauses has Transfers to the host pause while memory of their GPU is mapped. While such a copy runs, cuMemSetAccess takes 1 ms for each
// handle, as measured on an H100; otherwise 30 us. It is shared by the devices of a GPU: one may copy and another map.
type pauses struct {
	life  sync.RWMutex // held for reading while the word is used: by copies that are being queued, and by calls that copies wait for
	maker *Device      // of the word, nil for none
	tried bool
	word  *uint32 // pinned memory of the host: copies wait while it is not 0

	mu      sync.Mutex // held while the word is written, with what is below
	longest time.Duration
	limit   *time.Timer
	calls   int // that copies wait for
	expired int
}

// pausesOf returns those of a GPU.
func (l *Library) pausesOf(device C.int) *pauses {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pauses[device]
	if p == nil {
		p = &pauses{longest: longestPause}
		l.pauses[device] = p
	}
	return p
}

// use returns the address of the word for which copies of a device wait, 0 for none. It stays until done is called.
func (p *pauses) use(d *Device) uintptr {
	p.life.RLock()
	if !p.tried {
		p.life.RUnlock()
		p.make(d)
		p.life.RLock()
	}
	return uintptr(unsafe.Pointer(p.word))
}

func (p *pauses) done() { p.life.RUnlock() }

func (p *pauses) make(d *Device) {
	p.life.Lock()
	defer p.life.Unlock()
	if p.tried {
		return
	}
	p.tried = true
	r := C.gm_pause_word(d.c) // where it fails copies do not pause
	if r.code == 0 && r.value[0] != 0 {
		p.word, p.maker = wordAt(r.value[0]), d
		p.limit = time.AfterFunc(p.longest, p.expire)
		p.limit.Stop()
	}
}

// wordAt returns the word at an address of C's.
func wordAt(address C.uint64_t) *uint32 { return *(**uint32)(unsafe.Pointer(&address)) }

// begin has copies pause until end is called with what it returns: whether they do.
func (p *pauses) begin() bool {
	p.life.RLock()
	if p.word == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expired >= mostExpired {
		return false
	}
	if p.calls++; p.calls == 1 {
		p.limit.Reset(p.longest)
		atomic.StoreUint32(p.word, 1)
	}
	return true
}

func (p *pauses) end(begun bool) {
	if begun {
		p.resume()
	}
	p.life.RUnlock()
}

func (p *pauses) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls--; p.calls == 0 {
		p.limit.Stop()
		atomic.StoreUint32(p.word, 0)
	}
}

// expire lets copies go on before the calls have ended.
func (p *pauses) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls > 0 {
		p.expired++
		atomic.StoreUint32(p.word, 0)
	}
}

// close frees the word if a device has made it.
func (p *pauses) close(d *Device) error {
	p.life.Lock()
	defer p.life.Unlock()
	if p.maker != d {
		return nil
	}
	p.limit.Stop()
	word := p.word
	p.word, p.maker, p.tried = nil, nil, false
	return d.library.check(C.gm_pause_word_free(d.c, C.uint64_t(uintptr(unsafe.Pointer(word)))))
}
