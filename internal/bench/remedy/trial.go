package remedy

import (
	"context"
	"errors"

	"gm/internal/bench"
	"gm/internal/bench/fit"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/failure"
)

// candidate is an allocator to try.
type candidate struct {
	kind Kind
	conf allocconf.Conf // of PyTorch's
}

// The settings that are tried: sizes in MiB, shares of the limit, steps between powers of two.
var (
	splitSizes = []int64{32, 64, 128, 256, 512}
	thresholds = []float64{0.6, 0.8}
	divisions  = []int64{4, 8}
)

// families returns the candidates in groups of which the best is shown, the recorded allocator first.
func (r *runner) families(recorded allocconf.Conf) [][]candidate {
	all := [][]candidate{{{AsRecorded, recorded}}}
	if r.failure.Need > r.failure.Most { // no allocator meets it
		return all
	}
	settings := func(confs ...allocconf.Conf) {
		var group []candidate
		for _, c := range confs {
			if c != recorded {
				group = append(group, candidate{Settings, c})
			}
		}
		all = append(all, group)
	}
	expandable := recorded
	expandable.Expandable = !recorded.Expandable
	settings(expandable)
	settings(each(recorded, splitSizes, func(c *allocconf.Conf, mib int64) { c.MaxSplitSize = mib << 20 })...)
	settings(each(recorded, thresholds, func(c *allocconf.Conf, share float64) { c.GCThreshold = share })...)
	settings(each(recorded, divisions, func(c *allocconf.Conf, n int64) {
		for i := range c.Divisions {
			c.Divisions[i] = n
		}
	})...)
	return append(all, []candidate{{kind: Stitch}}, []candidate{{kind: Layout}})
}

func each[T any](conf allocconf.Conf, values []T, set func(*allocconf.Conf, T)) []allocconf.Conf {
	all := make([]allocconf.Conf, len(values))
	for i, v := range values {
		all[i] = conf
		set(&all[i], v)
	}
	return all
}

// runner replays a program up to a failure. Each replay takes a slot of room.
type runner struct {
	program *replay.Program
	failure *failure.Failure
	room    chan struct{}
}

// try replays with the least memory that there may have been and, if the request is not met, with the most.
func (r *runner) try(ctx context.Context, c candidate) (Trial, error) {
	r.room <- struct{}{}
	defer func() { <-r.room }()
	t := Trial{Kind: c.kind, Met: Yes, Row: -1}
	if c.kind == AsRecorded || c.kind == Settings {
		t.Setting = c.conf.String()
	}
	end, err := r.replay(ctx, c, r.failure.Room)
	if err == nil && end.oom && r.failure.Most > r.failure.Room {
		t.Met = Unsure
		end, err = r.replay(ctx, c, r.failure.Most)
	}
	if err != nil {
		return t, err
	}
	if t.Reserved = end.peak; end.oom {
		t.Met, t.Reserved, t.Row = No, 0, end.row
	}
	return t, nil
}

// end is how a replay ended.
type end struct {
	oom  bool
	row  int64 // of the request that was not met
	peak int64 // bytes reserved
}

// replay replays the program in so many bytes.
func (r *runner) replay(ctx context.Context, c candidate, bytes int64) (end, error) {
	dev, a, err := r.allocator(ctx, c, bytes)
	if replay.NewOOM(err) != nil { // the arenas of a layout do not fit
		return end{oom: true, row: r.failure.Row}, nil
	}
	if err != nil {
		return end{}, err
	}
	res, err := replay.Run(ctx, r.program, a, dev)
	if errors.Is(err, cuda.ErrOutOfMemory) { // the memory from before the recording does not fit
		return end{oom: true, row: 0}, nil
	}
	if err != nil {
		return end{}, err
	}
	e := end{oom: res.OOM != nil, row: -1, peak: res.Stats.PeakReserved}
	if e.oom {
		e.row = res.OOM.Row
	}
	return e, nil
}

// allocator makes an allocator that may reserve so many bytes.
func (r *runner) allocator(ctx context.Context, c candidate, bytes int64) (*sim.Device, blocks.Allocator, error) {
	switch c.kind {
	case AsRecorded, Settings:
		return r.torch(c, bytes)
	}
	spec, err := bench.ParseSpecs(map[Kind]string{Stitch: "stitch", Layout: "planned"}[c.kind])
	if err != nil {
		return nil, nil, err
	}
	dev := sim.New(bytes, sim.H200())
	a, err := spec[0].Make(ctx, r.program, dev)
	return dev, a, err
}

// torch makes PyTorch's allocator. With other settings than the recorded ones the memory from before the recording is requested like any
// other: it would have been laid out in another way.
func (r *runner) torch(c candidate, bytes int64) (*sim.Device, blocks.Allocator, error) {
	dev, t, err := Room{bytes, counted(r.failure)}.Torch(c.conf, sim.H200())
	if err != nil || c.kind == AsRecorded {
		return dev, t, err
	}
	return dev, struct{ blocks.Allocator }{t}, nil
}

// slack is by how much a card must be larger than one on which the request failed, in bytes: cards of one kind differ by less.
const slack = 1 << 30

// smallestCard returns the smallest card on which the recorded allocator meets the request, nil if it is on none.
func (r *runner) smallestCard(ctx context.Context, recorded allocconf.Conf) (*fit.Card, error) {
	for _, card := range fit.Cards() {
		if card.Usable < r.failure.Need || r.failure.Limit == failure.NoLimit && card.Usable < r.failure.Room+slack {
			continue
		}
		whole := *r.failure
		whole.Limit, whole.Room, whole.Most = failure.NoLimit, card.Usable, card.Usable
		t, err := (&runner{r.program, &whole, r.room}).try(ctx, candidate{AsRecorded, recorded})
		if err != nil || t.Met == Yes {
			return &card, err
		}
	}
	return nil, nil
}
