package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/swap/server/wire"
	"gm/internal/swap/share"
)

// keys is the memory that this process has by keys.
type keys struct {
	mu     sync.Mutex
	opened map[int64]*keyed
	last   int64
}

// keyed is the memory of a key, with a device of its own: what the allocator has open is behind another lock.
type keyed struct {
	mu      sync.Mutex
	ordinal int
	dev     *driver.Device
	memory  *share.Memory // nil once it is closed
}

var sharedKeys = keys{opened: map[int64]*keyed{}}

// openKeyed opens a device and a key.
func (p *process) openKeyed(ordinal int, key string) (*keyed, error) {
	p.mu.Lock()
	err := p.loadDriver()
	library, path, name := p.library, p.settings.server, p.settings.name
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if path == "" {
		path = wire.Path()
	}
	dev, err := visitor{library, path, name}.open(ordinal)
	if err != nil {
		return nil, err
	}
	memory, err := share.Open(path, dev, key)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	C.gm_change_descriptor(-1, C.int(memory.Descriptor()))
	return &keyed{ordinal: ordinal, dev: dev, memory: memory}, nil
}

// freeze freezes the memory of a key.
func freeze(m *share.Memory) error {
	before := m.Descriptor()
	err := m.Freeze()
	C.gm_change_descriptor(C.int(before), C.int(m.Descriptor()))
	return err
}

// add returns the number of a key that was opened.
func (k *keys) add(x *keyed) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	k.opened[k.last] = x
	return k.last
}

// with calls f for the memory of a number.
func (k *keys) with(id int64, f func(m *share.Memory) error) error {
	return k.withKeyed(id, func(x *keyed) error { return f(x.memory) })
}

// withKeyed calls f for the key of a number, which is open.
func (k *keys) withKeyed(id int64, f func(x *keyed) error) error {
	k.mu.Lock()
	x := k.opened[id]
	k.mu.Unlock()
	if x == nil {
		return fmt.Errorf("%d is no key that is open", id)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.memory == nil {
		return fmt.Errorf("%d is no key that is open", id)
	}
	return f(x)
}

// close ends the use of a key.
func (k *keys) close(id int64) error {
	k.mu.Lock()
	x := k.opened[id]
	delete(k.opened, id)
	k.mu.Unlock()
	if x == nil {
		return fmt.Errorf("%d is no key that is open", id)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	C.gm_change_descriptor(C.int(x.memory.Descriptor()), -1)
	err := errors.Join(x.memory.Close(), x.dev.Close())
	x.memory = nil
	return err
}

// keyResult is 0, or -1 where a call failed; then its text is kept for this thread.
func keyResult(call func() error) (result C.int) {
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("keys: BUG: %v\n%s", r, debug.Stack())
			fail(fmt.Sprint("BUG: ", r))
			result = -1
		}
	}()
	if err := call(); err != nil {
		fail(err.Error())
		return -1
	}
	return 0
}

//export go_key_open
func go_key_open(device C.int, key *C.char) (id C.int64_t, p C.uint64_t, size C.size_t) {
	keyResult(func() error {
		x, err := self.openKeyed(int(device), C.GoString(key))
		if err == nil {
			id, p, size = C.int64_t(sharedKeys.add(x)), C.uint64_t(x.memory.Pointer()), C.size_t(x.memory.Size())
		}
		return err
	})
	return id, p, size
}

// go_key_make returns the memory, or 0 and the device that has no room for it, -1 if that is not why.
//
//export go_key_make
func go_key_make(id C.int64_t, size C.size_t) (p C.uint64_t, full C.int) {
	full = -1
	keyResult(func() error {
		return sharedKeys.withKeyed(int64(id), func(x *keyed) error {
			err := x.memory.Make(int64(size))
			if errors.Is(err, cuda.ErrOutOfMemory) {
				full = C.int(x.ordinal)
			}
			if err == nil {
				p = C.uint64_t(x.memory.Pointer())
			}
			return err
		})
	})
	return p, full
}

//export go_key_write
func go_key_write(id C.int64_t, offset C.size_t, from unsafe.Pointer, n C.size_t) C.int {
	return keyResult(func() error {
		return sharedKeys.with(int64(id), func(m *share.Memory) error {
			if n > 1<<48 {
				return fmt.Errorf("%d bytes are too many", n)
			}
			return m.Write(int64(offset), unsafe.Slice((*byte)(from), int(n)))
		})
	})
}

//export go_key_freeze
func go_key_freeze(id C.int64_t) C.int {
	return keyResult(func() error { return sharedKeys.with(int64(id), freeze) })
}

//export go_key_close
func go_key_close(id C.int64_t) C.int {
	return keyResult(func() error { return sharedKeys.close(int64(id)) })
}
