// Package remedy replays a recording up to a request that failed, with other settings, on other allocators and on other cards, to find out
// where the request would have been met.
package remedy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"gm/internal/bench/fit"
	"gm/internal/bench/replay"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/failure"
)

// Answer says whether a request would have been met.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unsure  Answer = "unsure"  // with the most memory that the limit may have been, and not with the least
	Unknown Answer = "unknown" // the recording began midway, and with another layout of what was there the recorded settings meet it, too
)

// Trial is the result of one replay.
type Trial struct {
	Kind     Kind   `json:"kind"`
	Setting  string `json:"setting"` // the value of PYTORCH_CUDA_ALLOC_CONF, of PyTorch's allocator
	Tried    int    `json:"tried"`   // settings of its kind, of which it is the best
	Met      Answer `json:"met"`
	Reserved int64  `json:"reserved_bytes"` // at most, up to and with the request; 0 if it is not met
	Row      int64  `json:"row"`            // of the request that is not met; -1 if all are
}

// Kind is what a trial replays the requests with.
type Kind string

// The kinds of trials.
const (
	AsRecorded Kind = "recorded" // PyTorch's allocator as it was set: that it fails, too, confirms the replay
	Settings   Kind = "settings" // PyTorch's allocator with other settings
	Stitch     Kind = "stitch"   // gm's allocator
	Layout     Kind = "layout"   // a layout that is solved beforehand
)

// Results are what replays of a program that failed say. They end with the request: what the program would have requested after it is not
// known.
type Results struct {
	Recorded Trial     `json:"recorded"`
	Trials   []Trial   `json:"trials"`
	Card     *fit.Card `json:"card"` // the smallest known one on which the allocator, as it was set, meets the request; nil if there is none
}

// Replay tries everything for the failure of a program. It uses all cores.
func Replay(ctx context.Context, p *replay.Program, f *failure.Failure) (*Results, error) {
	p, err := UpTo(p, f)
	if err != nil {
		return nil, err
	}
	conf, _ := allocconf.Recorded(p.AllocConf)
	r := &runner{program: p, failure: f, room: make(chan struct{}, runtime.GOMAXPROCS(0))}
	families := r.families(conf)
	best := make([]Trial, len(families))
	errs := make([]error, len(families))
	var all sync.WaitGroup
	for i, candidates := range families {
		all.Go(func() { best[i], errs[i] = r.best(ctx, candidates) })
	}
	var card *fit.Card
	var cardErr error
	all.Go(func() { card, cardErr = r.smallestCard(ctx, conf) })
	all.Wait()
	if err := errors.Join(append(errs, cardErr)...); err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.Name, err)
	}
	results := &Results{Recorded: best[0], Trials: best[1:], Card: card}
	return results, r.doubt(ctx, results, conf)
}

// doubt withdraws the answers about other allocators if the recording began midway and they show nothing: what was there before is
// requested anew in their replays, and the recorded settings, too, meet the request then. A layout remains what is possible at best.
func (r *runner) doubt(ctx context.Context, results *Results, recorded allocconf.Conf) error {
	if len(r.program.Initial) == 0 || len(results.Trials) == 0 {
		return nil
	}
	control, err := r.try(ctx, candidate{Settings, recorded})
	if err != nil || control.Met == No {
		return err
	}
	for i := range results.Trials {
		if t := &results.Trials[i]; t.Kind != Layout && t.Met != No {
			t.Met, t.Reserved = Unknown, 0
		}
	}
	return nil
}

// best returns the trial of a family that takes the least, of those that meet the request if any does.
func (r *runner) best(ctx context.Context, candidates []candidate) (Trial, error) {
	trials := make([]Trial, len(candidates))
	errs := make([]error, len(candidates))
	var all sync.WaitGroup
	for i, c := range candidates {
		all.Go(func() { trials[i], errs[i] = r.try(ctx, c) })
	}
	all.Wait()
	best := trials[0]
	best.Tried = len(trials)
	for _, t := range trials[1:] {
		if rank(t) > rank(best) || rank(t) == rank(best) && t.Reserved < best.Reserved {
			t.Tried = len(trials)
			best = t
		}
	}
	return best, errors.Join(errs...)
}

func rank(t Trial) int { return map[Answer]int{No: 0, Unsure: 1, Yes: 2}[t.Met] }
