package estimate

import (
	"testing"
	"time"

	"gm/internal/swap/link"
	"gm/internal/trace/failure"
)

// TestMoved: what is beyond the limit leaves, once for as long as it can be away, and what must be there stays.
func TestMoved(t *testing.T) {
	s := Stage{step: []failure.Moment{
		{Live: 10, Least: 10},
		{Live: 40, Least: 20}, // 10 leave below 30
		{Live: 50, Least: 22}, // and 10 more
		{Live: 25, Least: 20}, // of the 20 on the host, 15 were needed
		{Live: 45, Least: 20}, // 10 more of 15 that are to leave
		{Live: 35, Least: 34}, // 4 too many, which cannot leave
		{TimeNS: 9, Step: true},
	}}
	for limit, want := range map[int64]int64{60: 0, 50: 0, 45: 5, 30: 30} {
		if got := s.moved(limit); got != want {
			t.Errorf("limit %d: %d bytes leave, want %d", limit, got, want)
		}
	}
	if s.duration() != 9 {
		t.Errorf("%v long, want 9 ns", s.duration())
	}
}

// TestSwapRecorded holds estimates against gmswap run with three quarters of the memory, ten steps each (experiments/fleet/results).
func TestSwapRecorded(t *testing.T) {
	m := recordedModel(t)
	for _, c := range []struct {
		fields string
		stage  int
		limit  int64
		moved  float64       // GiB that left in a step
		adds   time.Duration // by gmswap's lines
		off    float64       // of what left; docs/estimate.md says why
	}{
		{"batch=2,seq=4Ki,tp=2", 0, 5442809472, 1.76, 22 * time.Millisecond, -0.05},
		{"batch=2,seq=4Ki,cp=2", 0, 5157129984, 1.56, 0, -0.03},
		{"batch=1,seq=4Ki,micro=4,pp=2", 0, 4918007808, 1.42, 0, -0.61},
		{"batch=1,seq=4Ki,micro=4,pp=2", 1, 4918007808, 2.92, 0, -0.18},
	} {
		e := mustEstimate(t, m, c.fields, "N")
		s := &e.Stages[c.stage]
		moved := s.moved(c.limit)
		off := float64(moved)/(1<<30)/c.moved - 1
		if off < c.off-0.01 || off > c.off+0.01 {
			t.Errorf("%s, stage %d: %+.2f of what left, want %+.2f", c.fields, c.stage, off, c.off)
		}
		if most := link.Default().OutTime(moved) + link.Default().InTime(moved); s.least > c.limit || c.adds > most {
			t.Errorf("%s, stage %d: %d bytes needed of %d; at most %v more, measured %v", c.fields, c.stage, s.least, c.limit, most, c.adds)
		}
	}
}

// TestSwapCards: cards that have enough under gmswap alone, each with no more moved than a smaller one.
func TestSwapCards(t *testing.T) {
	e := mustEstimate(t, mustLookup(t, "llama-8b"), "batch=1,seq=8Ki,ranks=8", "M")
	if !e.Swap.Helps || len(e.Swap.Cards) < 2 {
		t.Fatalf("%+v", e.Swap)
	}
	for i, c := range e.Swap.Cards {
		if e.On(c.Card) != nil || c.Limit < e.Swap.Least || c.Limit != e.Usable(c.Card) || c.Moved <= 0 || c.Least > c.Most || c.Step <= 0 {
			t.Errorf("%+v, at least %d", c, e.Swap.Least)
		}
		if i > 0 && c.Moved > e.Swap.Cards[i-1].Moved {
			t.Errorf("%s moves more than the smaller %s", c.Card.Name, e.Swap.Cards[i-1].Card.Name)
		}
	}
	// Nothing but parameters and gradients is on the GPU.
	if e := mustEstimate(t, mustLookup(t, "llama-8b"), "batch=1,seq=64", "OR"); e.Swap.Helps || e.Swap.Cards != nil {
		t.Errorf("%+v", e.Swap)
	}
}
