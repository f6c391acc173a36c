package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// A replay of PyTorch's allocator must do so many requests a second on one core, of processor time, and an allocator that has served four
// million requests may take no longer than one that has served half a million. The two take turns, and the best turn of each
// counts, as the machine's speed changes from one moment to the next; a fifth is allowed for what noise is left.
const (
	replayRate  = 3e6
	replayYoung = 500_000
	replayOld   = 4_000_000
	replayTurn  = 250_000
	replayTurns = 20
	replayNoise = 0.2
)

// measureReplay times PyTorch's allocator over each trace, several times over, as one long run.
func measureReplay(e *experiment) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, s := range e.traces {
		programs, err := replay.Open(s.trace)
		if err != nil {
			return err
		}
		for _, p := range programs {
			young, old, err := replayRates(p)
			if err != nil {
				return err
			}
			e.add("replay "+s.name, fmt.Sprintf("%.1f M/s, %.1f after %d M requests", young/1e6, old/1e6, replayOld/1_000_000),
				fmt.Sprintf("%.0f M/s, no slower", replayRate/1e6), min(young, old) >= replayRate && old >= (1-replayNoise)*young)
		}
	}
	return nil
}

// replayRates returns the requests a second of an allocator that has served few requests and of one that has served many.
func replayRates(p *replay.Program) (young, old float64, err error) {
	few, err := newServed(p, replayYoung)
	if err != nil {
		return 0, 0, err
	}
	many, err := newServed(p, replayOld)
	if err != nil {
		return 0, 0, err
	}
	for range replayTurns {
		for _, turn := range []struct {
			s    *served
			best *float64
		}{{few, &young}, {many, &old}} {
			start := processorTime()
			n, err := turn.s.serve(replayTurn)
			if err != nil {
				return 0, 0, err
			}
			*turn.best = max(*turn.best, float64(n)/(processorTime()-start).Seconds())
		}
	}
	return young, old, nil
}

// served is an allocator that has served passes over a program.
type served struct {
	p    *replay.Program
	a    blocks.Allocator
	ptrs []cuda.Ptr
}

func newServed(p *replay.Program, requests int) (*served, error) {
	a, err := blocks.NewTorch(sim.New(0, sim.H200()), allocconf.Default())
	if err != nil {
		return nil, err
	}
	s := &served{p, a, make([]cuda.Ptr, len(p.Sizes))}
	_, err = s.serve(requests)
	return s, err
}

// serve runs whole passes of at least so many requests and returns how many it were.
func (s *served) serve(requests int) (int, error) {
	done := 0
	for done < requests {
		n, err := pass(s.p, s.a, s.ptrs)
		if err != nil {
			return 0, err
		}
		done += n
	}
	return done, nil
}

// processorTime returns the time that this process has had on a processor.
func processorTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic("BUG: getrusage: " + err.Error())
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// pass runs the program once, frees what it leaves live and returns the number of requests.
func pass(p *replay.Program, a blocks.Allocator, ptrs []cuda.Ptr) (int, error) {
	n := 0
	for i, kind := range p.Kinds {
		t := p.Tensors[i]
		var err error
		switch kind {
		case replay.Alloc:
			ptrs[t], err = a.Malloc(p.Sizes[t], p.Streams[t], p.Pools[t])
			n++
		case replay.Free, replay.Request:
			err = a.Free(ptrs[t])
			ptrs[t] = 0
			n++
		}
		if err != nil {
			return 0, fmt.Errorf("replay %s: row %d: %w", p.Name, p.Rows[i], err)
		}
	}
	for t, ptr := range ptrs {
		if ptr == 0 {
			continue
		}
		if err := a.Free(ptr); err != nil {
			return 0, fmt.Errorf("replay %s: free what is left: %w", p.Name, err)
		}
		ptrs[t] = 0
		n++
	}
	return n, nil
}
