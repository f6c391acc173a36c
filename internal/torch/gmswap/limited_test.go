package gmswap

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gm/internal/cuda/fake"
)

const (
	usualLimited = 6           // random programs that run under limits by default
	leastLimit   = 3 * 2 << 20 // bytes: some pages of the driver, for the smallest programs
)

// TestLimited runs random programs under limits that they would exceed by far, GM_LIMITED of them from GM_SEED on, and one with two streams for every
// three, and with two inputs for every four. None takes more, and what comes out is what comes out without the hook and a limit.
func TestLimited(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("GM_LIMITED"))
	if err != nil {
		count = usualLimited
	}
	first, _ := strconv.Atoi(os.Getenv("GM_SEED"))
	var taken shares
	t.Cleanup(func() { t.Log(&taken) })
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			limited(t, "limited", seed, &taken)
		})
		if seed%3 == 0 {
			t.Run(fmt.Sprint("streams", seed), func(t *testing.T) {
				t.Parallel()
				limited(t, "limited_streams", seed, &taken)
			})
		}
		if seed%4 == 3 {
			t.Run(fmt.Sprint("translations", seed), func(t *testing.T) {
				t.Parallel()
				limited(t, "translations", seed, &taken)
			})
		}
	}
}

// shares are how much of their limits programs took.
type shares struct {
	mutex  sync.Mutex
	shares []float64
}

func (s *shares) add(share float64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.shares = append(s.shares, share)
}

func (s *shares) String() string {
	if len(s.shares) == 0 {
		return "no program ended"
	}
	slices.Sort(s.shares)
	n := len(s.shares)
	return fmt.Sprintf("%d runs took at most this share of their limits: half %.3f, 99 %% %.3f, all %.3f", n, s.shares[n/2], s.shares[n*99/100], s.shares[n-1])
}

func limited(t *testing.T, program string, seed int, taken *shares) {
	s, number := newSession(t), fmt.Sprintf("SEED=%d", seed)
	plain := s.run(program, number)
	if plain.code != 0 || plain.stderr != "" {
		t.Fatalf("without the hook: %+v", plain)
	}
	most := s.physical()
	limit := max(most*uint64(45+5*(seed%8))/100, leastLimit)
	room := limit * 16 / 15 // of a device, of which a part is left to libraries
	for name, env := range map[string][]string{
		"limit":  {fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit)},
		"device": {fmt.Sprintf("GM_FAKE_LIMIT=%d", room+500<<20)}, // beside the context; others have the rest
	} {
		if (name == "limit") == (seed%2 == 0) {
			continue // each runs in one way
		}
		s = newSession(t)
		if name == "limit" {
			env = append(env, "REMADE="+s.remade())
		}
		got := s.hooked(program, "auto", append(env, number, "GMSWAP_HOST=1073741824")...)
		if got.code != 0 || got.stdout != plain.stdout {
			t.Fatalf("%s of %d bytes for %d: exit status %d\n%s%s", name, limit, most, got.code, firstDifference(got.stdout, plain.stdout), got.stderr)
		}
		took := s.physical()
		allowed := map[string]uint64{"limit": limit, "device": room}[name]
		if took == 0 || took > allowed {
			t.Errorf("%s: it took %d bytes of the %d allowed", name, took, allowed)
		}
		taken.add(float64(took) / float64(allowed))
		s.holdsNothing()
		remade, _ := os.ReadFile(s.remade())
		t.Logf("%d tensors recomputed", bytes.Count(remade, []byte("\n")))
		t.Logf("%s of %d bytes for %d: %s", name, limit, most, strings.TrimSpace(got.stderr))
	}
}

// TestLimitedHost runs random programs in 60 % of the memory that they take, with 40 % of it on the host, which together is little more than they save,
// twice GM_LIMITED of them. What comes out is what comes out without the hook and limits, or the program ends with out of memory: one in ten at most.
func TestLimitedHost(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("GM_LIMITED"))
	if err != nil {
		count = usualLimited
	}
	first, _ := strconv.Atoi(os.Getenv("GM_SEED"))
	var refused atomic.Int32
	t.Cleanup(func() {
		t.Logf("%d of %d ended with out of memory", refused.Load(), 2*count)
		if refused.Load() > int32(count/5) {
			t.Errorf("%d of %d ended with out of memory", refused.Load(), 2*count)
		}
	})
	for seed := first; seed < first+2*count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if !limitedHost(t, seed) {
				refused.Add(1)
			}
		})
	}
}

// limitedHost returns false for a program that ended with out of memory.
func limitedHost(t *testing.T, seed int) bool {
	s, number := newSession(t), fmt.Sprintf("SEED=%d", seed)
	plain := s.run("limited", number)
	if plain.code != 0 || plain.stderr != "" {
		t.Fatalf("without the hook: %+v", plain)
	}
	most := s.physical()
	limit, host := max(most*60/100, leastLimit), most*40/100
	s = newSession(t)
	env := []string{number, fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit), fmt.Sprintf("GMSWAP_HOST=%d", host), "REMADE=" + s.remade()}
	got := s.hooked("limited", "auto", env...)
	if took := s.physical(); took == 0 || took > limit {
		t.Errorf("it took %d bytes of the %d allowed", took, limit)
	}
	if got.code != 0 && strings.Contains(got.stderr, "OutOfMemoryError") && strings.HasPrefix(plain.stdout, got.stdout) {
		t.Logf("%d bytes and %d on the host for %d: %s", limit, host, most, strings.TrimSpace(got.stderr))
		return false
	}
	if got.code != 0 || got.stdout != plain.stdout {
		t.Fatalf("%d bytes and %d on the host for %d: exit status %d\n%s%s", limit, host, most, got.code, firstDifference(got.stdout, plain.stdout), got.stderr)
	}
	s.holdsNothing()
	return true
}

// remade is the file that notes what steps without a schedule recompute.
func (s *session) remade() string { return filepath.Join(s.dir, "remade") }

// physical returns the most bytes that the last program took, of small segments or of pieces, whichever are more.
func (s *session) physical() uint64 {
	s.t.Helper()
	c, err := fake.ReadCounts(s.counts())
	if err != nil {
		s.t.Fatal(err)
	}
	return max(c.Physical.Peak, c.Memory.Peak)
}

// TestEvicted evicts at random moments, also while something is loaded or recomputed, from programs that follow schedules, deviate from them, or
// are recorded.
func TestEvicted(t *testing.T) {
	for seed, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			f, _ := s.same(p.name, []string{"remake", "rows"}[seed%2], fmt.Sprintf("EVICT=%d", seed))
			if f.Out == 0 || f.Back == 0 {
				t.Errorf("the hook did %+v", f)
			}
		})
	}
}

// TestExhausted has a request fail for which nothing can be moved: a line says what holds the memory, and the program goes on.
func TestExhausted(t *testing.T) {
	s := newSession(t)
	r := s.hooked("exhausted", "auto", "GM_LIMIT=33554432", "GMSWAP_DEVICE=33554432")
	if r.code != 0 || !strings.Contains(r.stdout, "OutOfMemoryError\n") {
		t.Fatalf("%+v", r)
	}
	if strings.Count(r.stderr, "gmswap: out of memory: 0.00 GiB more do not fit 0.03 GiB. In use are 0.03 GiB that nothing can be done about here") != 1 {
		t.Errorf("it said %s", r.stderr)
	}
	s.holdsNothing()
}

// TestFits has steps of varying sizes: operators are looked at as long as what they make may have to leave, which in those that fit is not long.
func TestFits(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.same("fits", "auto", "GM_LIMIT=33554432", "GMSWAP_DEVICE=33554432", "GMSWAP_HOST=1073741824", "REMADE="+s.remade())
}

// TestLengths has steps of random sizes: most follow schedules, though few are like one before.
func TestLengths(t *testing.T) {
	t.Parallel()
	const limit = 32 << 20
	newSession(t).want("lengths")
	s := newSession(t)
	f, _ := s.same("lengths", "auto", fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit), "GMSWAP_HOST=1073741824")
	if f.Followed < f.Steps/2 || f.Out == 0 {
		t.Errorf("the hook did %+v", f)
	}
	if took := s.physical(); took > limit {
		t.Errorf("it took %d bytes", took)
	}
}

// TestTranslations has steps of two lengths that vary by themselves: they follow schedules that were made for others, or are left alone where they have room.
func TestTranslations(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.want("translations")
	limit := s.physical() * 6 / 10
	s = newSession(t)
	f, said := s.same("translations", "auto", fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit), "GMSWAP_HOST=1073741824")
	if f.Ways["planned"] < f.Steps/3 || f.Ways["left alone"] < 3 || f.Out == 0 {
		t.Errorf("the hook did %+v, and said %q", f, said)
	}
	if took := s.physical(); took > limit {
		t.Errorf("it took %d bytes of %d", took, limit)
	}
}

// TestSuccessive trains models one after the other: steps of the later ones begin before anything watches them.
func TestSuccessive(t *testing.T) {
	t.Parallel()
	const limit = 32 << 20
	without := newSession(t)
	without.want("successive")
	if took := without.physical(); took <= limit {
		t.Fatalf("without a limit it takes %d bytes", took)
	}
	s := newSession(t)
	f, said := s.same("successive", "auto", fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit), "GMSWAP_HOST=1073741824")
	if f.Ways["planned"] < 6 || f.Steps < 25 { // more than one model's
		t.Errorf("the hook did %+v, and said %q", f, said)
	}
	if took := s.physical(); took > limit {
		t.Errorf("it took %d bytes", took)
	}
}

// TestRefused has no memory for what is fetched ahead: what is needed comes by itself.
func TestRefused(t *testing.T) {
	s := newSession(t)
	f, said := s.same("refused", "auto", "EVICT=1")
	s.says(said, []string{"gmswap: nothing is fetched ahead"})
	if f.Back == 0 {
		t.Errorf("the hook did %+v", f)
	}
}

// TestBefore has requests find no room before a model is run, and where none is.
func TestBefore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"loaded", "unmodelled"} {
		s := newSession(t)
		want := s.want(name)
		r := s.hooked(name, "auto", "GM_LIMIT=33554432", "GMSWAP_DEVICE=33554432")
		if r.code != 0 || r.stdout != want || strings.Count(r.stderr, "requests found no room") != 1 {
			t.Errorf("%s: exit status %d\n%s%s", name, r.code, firstDifference(r.stdout, want), r.stderr)
		}
		s.holdsNothing()
	}
}

// TestTriedBeside has two threads ask at the same time for memory that is not there: one of them can do without.
func TestTriedBeside(t *testing.T) {
	_, said := newSession(t).same("tried_beside", "auto", "GM_LIMIT=33554432", "GMSWAP_DEVICE=33554432")
	if !strings.Contains(strings.Join(said, "\n"), "requests found no room") {
		t.Errorf("it said %s", said)
	}
}

// TestTried asks for more than the limit: nothing is moved for it.
func TestTried(t *testing.T) {
	s := newSession(t)
	f, _ := s.same("tried", "auto", "GM_LIMIT=50331648", "GMSWAP_DEVICE=50331648")
	if !f.Served || f.Steps != 4 || f.Out != 0 {
		t.Errorf("the hook did %+v", f)
	}
}
