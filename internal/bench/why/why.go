// Package why breaks down what an allocator reserves beyond what a program requests.
package why

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/cuda/sim"
)

// Account breaks down what an allocator held beyond what was requested, at the peak of its reserved bytes.
//
// The moment is right after the request that reached the peak. If the peak was reached before the first request, as with the arenas of a
// plan, it is the moment with the most bytes requested, of those at which as much is still reserved.
type Account struct {
	Allocator string `json:"allocator"`
	Device    int32  `json:"device"`
	TimeNS    int64  `json:"time_ns"`         // since the Unix epoch
	Row       int64  `json:"row"`             // of the trace
	Stream    int64  `json:"stream"`          // of the request at that moment, or of the last one before it
	Requested int64  `json:"requested_bytes"` // that the program requested and still held
	Reserved  int64  `json:"reserved_bytes"`
	Parts     []Part `json:"parts"` // their Bytes sum to Reserved - Requested, exactly
	Pins      []Pin  `json:"pins"`  // segments with most bytes free that cannot be released, the worst first, at most ten

	OOM *bench.OOM `json:"oom"` // where the replay ended early, nil if it did not; the other fields are empty if that was at its beginning

	pinning []pinning
}

// Part is the bytes that were lost by one cause.
type Part struct {
	Name  string `json:"name"` // rounding, split tails, ...
	About string `json:"about"`
	Bytes int64  `json:"bytes"`
}

// Pin is a segment with free bytes that cannot be released because of the blocks in use in it.
type Pin struct {
	Segment  int64  `json:"segment"` // its address
	Reserved int64  `json:"reserved_bytes"`
	Live     int64  `json:"live_bytes"`  // in blocks that are in use, or pending
	Blocks   int    `json:"blocks"`      // that are in use
	Block    int64  `json:"block_bytes"` // requested for the oldest of them; the fields below are also of that block
	Stack    string `json:"stack"`       // folded, outermost frame first; empty if none was recorded
	AgeNS    int64  `json:"age_ns"`      // since the row that allocated it
	Stream   int64  `json:"stream"`
}

// ExplainAll replays p through each allocator twice, each on a GPU of its own: once to find the moment, and once up to it. It uses all
// cores, reads the stacks once, and calls done after each allocator, from any goroutine.
func ExplainAll(ctx context.Context, p *replay.Program, specs []bench.Spec, gpu bench.GPU, done func()) ([]*Account, error) {
	accounts := make([]*Account, len(specs))
	errs := make([]error, len(specs))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, spec := range specs {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			accounts[i], errs[i] = explain(ctx, p, spec, gpu)
			done()
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: allocator %s: %w", p.Name, specs[i].Text, err)
		}
	}
	return accounts, addStacks(p, accounts)
}

// explain makes the account of one allocator, without the stacks.
func explain(ctx context.Context, p *replay.Program, spec bench.Spec, gpu bench.GPU) (*Account, error) {
	p, err := spec.Prepare(ctx, p)
	if err != nil {
		return nil, err
	}
	dev := sim.New(gpu.Capacity, gpu.Costs)
	a, err := spec.Make(ctx, p, dev)
	if oom := replay.NewOOM(err); oom != nil { // the arenas of a plan do not fit
		return nothing(p, spec, (*bench.OOM)(oom)), nil
	}
	if err != nil {
		return nil, err
	}
	peak, err := replay.FindPeak(ctx, p, a, dev)
	if err != nil {
		return nil, err
	}
	if peak.Step < 0 {
		return nothing(p, spec, (*bench.OOM)(peak.OOM)), nil
	}
	dev = sim.New(gpu.Capacity, gpu.Costs)
	if a, err = spec.Make(ctx, p, dev); err != nil {
		return nil, err
	}
	live, err := replay.Until(ctx, p, a, dev, peak.Step)
	if err != nil {
		return nil, err
	}
	m := newMoment(p, peak, live)
	account, err := m.account(a.Holdings())
	if err != nil {
		return nil, err
	}
	if account.Reserved != peak.Reserved {
		return nil, fmt.Errorf("BUG: %d bytes of %d reserved were found", account.Reserved, peak.Reserved)
	}
	account.Allocator, account.OOM = spec.Text, (*bench.OOM)(peak.OOM)
	return account, nil
}

// nothing is the account of an allocator that could not meet the first request, or got none.
func nothing(p *replay.Program, spec bench.Spec, oom *bench.OOM) *Account {
	return &Account{Allocator: spec.Text, Device: p.Device, Parts: new(parts).list(), OOM: oom}
}
