package engine

import (
	"sync"
	"sync/atomic"

	"gm/internal/swap/host"
)

// ahead takes pages of the host before they are needed: most of the time that pinning them takes.
type ahead struct {
	taken   int64 // bytes from the start of memory on that were taken, or are being
	stop    atomic.Bool
	working sync.WaitGroup
}

// aheadPart is how many bytes are taken before it is looked whether the engine closes.
const aheadPart = 64 << 20

// Expect takes memory of the host for tickets that will hold n bytes together, as far as the budget goes. It returns at once; the memory is
// pinned when it is needed.
func (e *Engine) Expect(n int64) {
	left := e.charged + e.allowance.most(e.arena.size-e.charged)
	end := min(n, left-host.Page()+1) + host.Page() - 1
	end -= end % host.Page()
	begin := max(e.ahead.taken, e.pinned)
	if e.closed || end <= begin || e.charge(end) != nil {
		return
	}
	e.ahead.taken = end
	part := e.memory.Bytes()[begin:end]
	e.ahead.working.Go(func() { e.ahead.take(part) })
}

// take takes the pages of a part of the memory. Some may be pinned meanwhile, and in use. Where there are no more, whoever pins them is told.
func (a *ahead) take(part []byte) {
	for len(part) > 0 && !a.stop.Load() {
		n := min(aheadPart, len(part))
		if host.Populate(part[:n]) != nil {
			return
		}
		part = part[n:]
	}
}

// release gives back what was taken behind an end, and takes no more: it cannot be pinned.
func (a *ahead) release(memory []byte, end int64) error {
	a.end()
	a.stop.Store(false)
	if a.taken <= end {
		return nil
	}
	taken := a.taken
	a.taken = end
	return host.Release(memory[end:taken])
}

// end waits until nothing is taken any more.
func (a *ahead) end() {
	a.stop.Store(true)
	a.working.Wait()
}
