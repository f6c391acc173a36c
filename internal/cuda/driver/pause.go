package driver

// #include "driver.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// longestPause is how long a call may take for which copies pause. One that takes longer waits for them: none pauses from then on.
const longestPause = 50 * time.Millisecond

const pausePart = C.GM_PAUSE_PART // bytes between two points at which a copy pauses

// pauses has Transfers to the host pause while memory of their GPU is mapped. While such a copy runs, cuMemSetAccess takes 1 ms for each
// handle, as measured on an H100; otherwise 30 us. It is shared by the devices of a GPU: one may copy and another map.
type pauses struct {
	mu    sync.RWMutex // held for reading while copies pause
	maker *Device      // of the word, nil for none
	tried bool
	word  *uint32 // pinned memory of the host: copies wait while it is not 0

	calls   atomic.Int32
	limit   *time.Timer
	expired atomic.Bool
	going   sync.Mutex // held while the word comes and goes: the timer must not wait for mu, for which close may wait
}

// pausesOf returns those of a GPU.
func (l *Library) pausesOf(device C.int) *pauses {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pauses[device]
	if p == nil {
		p = &pauses{}
		l.pauses[device] = p
	}
	return p
}

// address returns that of the word for which copies of a device wait, 0 for none.
func (p *pauses) address(d *Device) uintptr {
	p.mu.RLock()
	word, tried := p.word, p.tried
	p.mu.RUnlock()
	if !tried {
		word = p.make(d)
	}
	return uintptr(unsafe.Pointer(word))
}

func (p *pauses) make(d *Device) *uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tried {
		return p.word
	}
	p.tried = true
	r := C.gm_pause_word(d.c) // where it fails copies do not pause
	if r.code == 0 && r.value[0] != 0 {
		p.setWord(wordAt(r.value[0]))
		p.maker = d
		p.limit = time.AfterFunc(longestPause, p.expire)
		p.limit.Stop()
	}
	return p.word
}

func (p *pauses) setWord(word *uint32) {
	p.going.Lock()
	p.word = word
	p.going.Unlock()
}

// wordAt returns the word at an address of C's.
func wordAt(address C.uint64_t) *uint32 { return *(**uint32)(unsafe.Pointer(&address)) }

// begin has copies pause until end is called with what it returns: whether they do.
func (p *pauses) begin() bool {
	p.mu.RLock()
	if p.word == nil || p.expired.Load() {
		return false
	}
	if p.calls.Add(1) == 1 {
		p.limit.Reset(longestPause)
	}
	atomic.StoreUint32(p.word, 1)
	if p.expired.Load() {
		atomic.StoreUint32(p.word, 0)
	}
	return true
}

func (p *pauses) end(begun bool) {
	if begun && p.calls.Add(-1) == 0 {
		atomic.StoreUint32(p.word, 0)
		p.limit.Stop()
	}
	p.mu.RUnlock()
}

// expire lets copies go on for good.
func (p *pauses) expire() {
	p.expired.Store(true)
	p.going.Lock()
	defer p.going.Unlock()
	if p.word != nil {
		atomic.StoreUint32(p.word, 0)
	}
}

// close frees the word if a device has made it: it copies no more.
func (p *pauses) close(d *Device) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.maker != d {
		return nil
	}
	p.limit.Stop()
	word := p.word
	p.setWord(nil)
	p.maker, p.tried = nil, false
	return d.library.check(C.gm_pause_word_free(d.c, C.uint64_t(uintptr(unsafe.Pointer(word)))))
}
