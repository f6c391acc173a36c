package main

// #include "libgm.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/libgm/page"
	"gm/internal/swap/engine"
)

const (
	// processors is how many threads may be in Go at a time and between two calls of it. A thread that calls often keeps its
	// processor between calls, and one that finds none waits for a while. Idle ones cost nothing while the collector does not run.
	processors = 32
	// heapLimit is the heap size in bytes above which the collector runs: far above what the library needs.
	heapLimit = 512 << 20
)

// process is the state of the library. The fields of a gpu are guarded by the lock of its device, which C holds.
type process struct {
	log *logger

	mu       sync.Mutex // guards what follows, while devices are opened
	settings settings
	library  *driver.Library
	page     *page.Page
	unshow   func()                 // removes the page
	served   *served                // nil without a memory server
	serving  atomic.Pointer[served] // the same, for calls that have not got the lock

	swappers  int               // that are open
	allowance *engine.Allowance // what they may have of the host's memory together: as much as the first of them; nil without any

	gpus [C.GM_DEVICES]atomic.Pointer[gpu] // set once, under mu
}

var self = newProcess()

func newProcess() *process {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(heapLimit)
	runtime.GOMAXPROCS(processors)
	return &process{log: new(logger)}
}

// gpu returns a device that is open.
func (p *process) gpu(device C.int) *gpu { return p.gpus[device].Load() }

// open opens a device unless it is open, with no lock of a device held.
func (p *process) open(ordinal int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gpus[ordinal].Load() != nil {
		return nil
	}
	g, err := p.newGPU(ordinal)
	if err != nil {
		return fmt.Errorf("open device %d: %w", ordinal, err)
	}
	p.connect(g)
	p.gpus[ordinal].Store(g)
	g.small.begin()
	p.served.add(g)
	C.gm_set_open(C.int(ordinal), (*C.uint64_t)(g.account.version), unsafe.Pointer(g.account.Account))
	return nil
}

func (p *process) newGPU(ordinal int) (*gpu, error) {
	if err := p.load(); err != nil {
		return nil, err
	}
	dev, err := p.library.Open(ordinal)
	if err != nil {
		return nil, err
	}
	_, total, err := dev.MemInfo()
	if err != nil {
		return nil, fmt.Errorf("read the size of the device: %w", errors.Join(err, dev.Close()))
	}
	shown := &p.page.Devices[ordinal]
	g, err := newGPU(ordinal, p.served.device(dev), total, shown, p)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	shown.Total = total
	return g, nil
}

// connect makes the memory of a device that is about to be open, and that of the open ones, accessible to one another, and to those over
// whose links it sleeps and wakes.
func (p *process) connect(g *gpu) {
	ordinals := append([]int{g.ordinal}, p.served.linked()...)
	p.each(func(other *gpu) { ordinals = append(ordinals, other.ordinal) })
	if len(ordinals) == 1 {
		return
	}
	g.share(ordinals)
	p.each(func(other *gpu) { other.share(ordinals) })
}

// load reads the settings, loads the driver and makes the page, once.
func (p *process) load() error {
	if err := p.loadDriver(); err != nil || p.page != nil {
		return err
	}
	var err error
	if p.page, p.unshow, err = page.Create(p.settings.dir); err != nil {
		p.log.printf("%v; gmstitch stat will not see this process", err)
		p.page, p.unshow = new(page.Page), func() {}
	}
	return nil
}

// loadDriver reads the settings and loads the driver, until that has been done. Go starts in a thread of its own, beside which the program
// may change its environment: that is read here, in the thread of a call of the program.
func (p *process) loadDriver() error {
	if p.library != nil {
		return nil
	}
	p.settings = readSettings()
	p.log.path = p.settings.log
	var err error
	if p.library, err = driver.Load(); err != nil {
		return err
	}
	p.served = startServed(p)
	p.serving.Store(p.served)
	return nil
}

// loaded returns the driver and the settings.
func (p *process) loaded() (*driver.Library, settings, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.loadDriver()
	return p.library, p.settings, err
}

// each calls f for the devices that are open, each with its lock held.
func (p *process) each(f func(g *gpu)) {
	for i := range p.gpus {
		if !bool(C.gm_device_open(C.int(i))) {
			continue
		}
		p.with(i, f)
	}
}

// with calls f for a device that is open, with its lock held.
func (p *process) with(i int, f func(g *gpu)) {
	C.gm_lock(C.int(i))
	defer C.gm_unlock(C.int(i))
	f(p.gpus[i].Load())
}

// noMemory is what the driver says when the device is full.
func noMemory(err error) bool { return errors.Is(err, cuda.ErrOutOfMemory) }
