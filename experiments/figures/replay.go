package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/replay"
)

// A replay of PyTorch's allocator must do so many requests a second on one core, of processor time, and the last two of six
// million requests may take no longer than the first two: the best window of each counts, less a fifth for the noise of the
// machine.
const (
	replayRate   = 3e6
	replayWindow = 500_000
	replayTotal  = 6_000_000
	replayNoise  = 0.2
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
			rates, err := replayRates(p)
			if err != nil {
				return err
			}
			third := len(rates) / 3
			first, last := slices.Max(rates[:third]), slices.Max(rates[len(rates)-third:])
			e.add("replay "+s.name, fmt.Sprintf("%.1f M/s, %.1f after %d M requests", first/1e6, last/1e6, replayTotal/3*2/1_000_000),
				fmt.Sprintf("%.0f M/s, no slower", replayRate/1e6), min(first, last) >= replayRate && last >= (1-replayNoise)*first)
		}
	}
	return nil
}

// replayRates returns the requests a second of each window of at least 500,000, in passes over the program on one
// allocator. What a pass leaves live is freed before the next, which counts, too.
func replayRates(p *replay.Program) ([]float64, error) {
	dev := sim.New(0, sim.H200())
	a, err := blocks.NewTorch(dev, blocks.DefaultTorchConf())
	if err != nil {
		return nil, err
	}
	var rates []float64
	ptrs := make([]cuda.Ptr, len(p.Sizes))
	for total := 0; total < replayTotal; {
		done, start := 0, processorTime()
		for done < replayWindow {
			n, err := pass(p, a, ptrs)
			if err != nil {
				return nil, err
			}
			done += n
		}
		rates = append(rates, float64(done)/(processorTime()-start).Seconds())
		total += done
	}
	return rates, nil
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
