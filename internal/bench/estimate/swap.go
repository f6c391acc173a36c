package estimate

import (
	"slices"
	"time"

	"gm/formats/trace"
	"gm/internal/bench/fit"
	"gm/internal/swap/link"
	"gm/internal/trace/failure"
	"gm/internal/trace/tags"
)

// Swap is what a job comes to under gmswap run -m, where activations and states of the optimizer may wait on the host: an estimate from tags.
type Swap struct {
	Least int64      `json:"least_bytes"` // of memory for tensors, on the GPU that needs most
	Helps bool       `json:"helps"`       // enough leaves to count on it
	Cards []SwapCard `json:"cards"`       // that have so much, and not enough for any of the settings; null if it does not help
}

// SwapCard is a card on which the job runs under gmswap alone. Times are those of the GPU that moves most.
type SwapCard struct {
	Card  fit.Card      `json:"card"`
	Limit int64         `json:"limit_bytes"` // for -m: what the estimate may take of the card
	Moved int64         `json:"moved_bytes"` // to the host in a step at least, and as much back
	Step  time.Duration `json:"step_ns"`     // of computing, on an H200
	Least time.Duration `json:"adds_least_ns"`
	Most  time.Duration `json:"adds_most_ns"`
}

// follow keeps what the stage holds after each row of a step: of the last of those in which most lives.
func (s *Stage) follow(r *trace.Reader, labels *tags.Tags) error {
	var step []failure.Moment
	live, most := int64(0), int64(0)
	return failure.Follow(r, labels, func(m failure.Moment) {
		s.least = max(s.least, m.Least)
		live = max(live, m.Live)
		step = append(step, m)
		if m.Step {
			if live >= most {
				most, s.step = live, slices.Clone(step)
			}
			live, step = 0, step[:0]
		}
	})
}

// moved returns the bytes that leave for the host in a step at least, so that no more than a limit is on the device. What is on the host when
// it is needed comes back. Each step has all states of the optimizer on the device once.
func (s *Stage) moved(limit int64) int64 {
	away, sum := int64(0), int64(0)
	for _, m := range s.step {
		movable := m.Live - m.Least
		away = min(away, movable)
		if more := min(m.Live-limit, movable) - away; more > 0 {
			away += more
			sum += more
		}
	}
	return sum
}

// duration returns how long that step takes by the times of its rows.
func (s *Stage) duration() time.Duration {
	if len(s.step) == 0 {
		return 0
	}
	return time.Duration(s.step[len(s.step)-1].TimeNS - s.step[0].TimeNS)
}

// swap estimates what gmswap comes to, over a link.
func (e *Estimate) swap(l *link.Link) Swap {
	var m failure.Movable
	for i := range e.Stages {
		m.Least, m.Without = max(m.Least, e.Stages[i].least), max(m.Without, e.Stages[i].Live)
	}
	s := Swap{Least: m.Least, Helps: m.Helps()}
	for _, card := range fit.Cards() {
		if limit := e.Usable(card); s.Helps && limit >= s.Least && e.On(card) == nil {
			s.Cards = append(s.Cards, e.swapOn(card, limit, l))
		}
	}
	return s
}

// swapOn estimates the copies on a card. At best they go both ways at once beside the computation, which then takes as long as before or as long as
// they do. At worst nothing is computed beside them.
func (e *Estimate) swapOn(card fit.Card, limit int64, l *link.Link) SwapCard {
	c := SwapCard{Card: card, Limit: limit}
	for i := range e.Stages {
		s := &e.Stages[i]
		c.Moved, c.Step = max(c.Moved, s.moved(limit)), max(c.Step, s.duration())
	}
	both := l.Under(link.Load{Both: true})
	c.Least = max(0, max(both.OutTime(c.Moved), both.InTime(c.Moved))-c.Step)
	c.Most = l.OutTime(c.Moved) + l.InTime(c.Moved)
	return c
}
