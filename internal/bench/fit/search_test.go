package fit

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30
)

// scripted is a search in which the function fits says what capacity is enough. There are retries on each below peak.
func scripted(peak int64, fits func(capacity int64) bool) *search {
	return &search{try: func(capacity int64) (outcome, error) {
		switch {
		case capacity == 0:
			return outcome{fits: true, peak: peak}, nil
		case !fits(capacity):
			return outcome{}, nil
		case capacity >= peak:
			return outcome{fits: true, peak: peak}, nil
		}
		return outcome{fits: true, peak: capacity, retries: 3}, nil
	}}
}

func TestLeast(t *testing.T) {
	for name, c := range map[string]struct {
		requested, peak int64
		fits            func(capacity int64) bool
		least, retries  int64
	}{
		"no more than is requested": {30 * gibi, 40 * gibi, func(n int64) bool { return n >= 30*gibi }, 30 * gibi, 3},
		"in between":                {30 * gibi, 60 * gibi, func(n int64) bool { return n >= 44*gibi }, 44 * gibi, 3},
		"all that is reserved":      {30 * gibi, 60*gibi + 5, func(n int64) bool { return n >= 60*gibi }, 60 * gibi, 3},
		"not a whole step":          {30*gibi + 1, 30*gibi + 1, func(n int64) bool { return n > 30*gibi }, 30*gibi + 2*mebi, 0},
		"less than a step":          {1000, 1024, func(n int64) bool { return n > 0 }, 2 * mebi, 0},
		"more than any card":        {300 * gibi, 400 * gibi, func(n int64) bool { return n >= 333*gibi }, 333 * gibi, 3},
		"half of any memory":        {200 * gibi, 200 * gibi, func(n int64) bool { return n >= 400*gibi }, 400 * gibi, 0},
		"a hole above it": {30 * gibi, 60 * gibi, func(n int64) bool {
			return n >= 59*gibi || 32*gibi <= n && n < 50*gibi
		}, 32 * gibi, 3},
		"a small card fits, a larger one does not": {20 * gibi, 60 * gibi, func(n int64) bool {
			return n >= 59*gibi || 21*gibi <= n && n < 22*gibi
		}, 21 * gibi, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := Result{Requested: c.requested}
			s := scripted(c.peak, c.fits)
			if err := s.fill(&r); err != nil {
				t.Fatal(err)
			}
			if r.Least != c.least || r.Retries != c.retries || r.Peak != c.peak || r.Replays > 200 {
				t.Errorf("%+v, want %d with %d retries", r, c.least, c.retries)
			}
			for _, card := range r.Cards {
				if card.Fits != c.fits(card.Usable) && card.Usable >= c.requested {
					t.Errorf("%s: fits %v", card.Name, card.Fits)
				}
			}
		})
	}
}

// TestNever is a job that no memory is enough for.
func TestNever(t *testing.T) {
	s := &search{try: func(int64) (outcome, error) { return outcome{}, nil }}
	r := Result{Requested: gibi}
	if err := s.fill(&r); err != nil || r.Least != 0 || r.Peak != 0 || len(r.Cards) != len(Cards()) || r.Replays != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if slices.ContainsFunc(r.Cards, func(c OnCard) bool { return c.Fits }) {
		t.Errorf("fits %+v", r.Cards)
	}
}

// TestFailure passes an error of a replay on, whenever it comes.
func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	for after := range 20 {
		var lock sync.Mutex
		left := after
		good := scripted(60*gibi, func(n int64) bool { return n >= 40*gibi })
		s := &search{try: func(capacity int64) (outcome, error) {
			lock.Lock()
			defer lock.Unlock()
			if left--; left < 0 {
				return outcome{}, broken
			}
			return good.try(capacity)
		}}
		if err := s.fill(&Result{Requested: 30 * gibi}); !errors.Is(err, broken) {
			t.Errorf("after %d: %v", after, err)
		}
	}
}

func TestCards(t *testing.T) {
	cards := Cards()
	sizes := map[int]bool{}
	for i, c := range cards {
		sizes[c.GB] = true
		if c.Usable%step != 0 || c.Usable >= c.Capacity || c.Capacity > int64(c.GB)<<30 || c.Capacity < int64(c.GB)<<30*9/10 {
			t.Errorf("%+v", c)
		}
		if i > 0 && c.Usable <= cards[i-1].Usable {
			t.Errorf("%s has no more than %s", c.Name, cards[i-1].Name)
		}
	}
	for _, gb := range []int{24, 40, 48, 80, 96, 141, 192} {
		if !sizes[gb] {
			t.Errorf("no card of %d GB", gb)
		}
	}
}
