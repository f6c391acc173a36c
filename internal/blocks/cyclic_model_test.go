package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// plainCyclic says which requests get their places of a plan: those that are the steps which are expected, or that the requests before them
// identify, where no block is in the way, from the beginning of an iteration on.
type plainCyclic struct {
	cycle   *Cycle
	recent  []Step
	next    int32
	matched int
	begun   bool
	placed  map[int32]bool // steps whose blocks are in use
	guests  map[int32]Step // blocks beside the plan in its arenas

	followed, strayed, jumps, blocked, late, welcomed int64
}

// vacant reports whether a place is free.
func (m *plainCyclic) vacant(s *Step) bool {
	apart := func(o *Step) bool { return o.Arena != s.Arena || s.Offset >= o.end() || o.Offset >= s.end() }
	for k := range m.placed {
		if !apart(&m.cycle.Steps[k]) {
			return false
		}
	}
	for _, g := range m.guests {
		if !apart(&g) {
			return false
		}
	}
	return true
}

// malloc returns the step whose place the request gets, none if it gets none.
func (m *plainCyclic) malloc(size int64, stream cuda.Stream) int32 {
	i := m.step(size, stream)
	if i != none && m.begun && m.cycle.Steps[i].Arena != NoArena {
		if m.vacant(&m.cycle.Steps[i]) {
			m.placed[i] = true
			m.followed++
			return i
		}
		m.blocked++
	}
	if m.begun {
		m.strayed++
	}
	return none
}

func (m *plainCyclic) step(size int64, stream cuda.Stream) int32 {
	m.recent = append(m.recent, Step{Size: size, Stream: stream})
	is := func(i int32) bool {
		return i != none && m.cycle.Steps[i].Size == size && m.cycle.Steps[i].Stream == stream
	}
	i := m.next
	if !is(i) {
		if i = plainFind(m.cycle.Steps, m.recent, i); i == none {
			return none
		}
		m.matched = 0
		m.jumps++
	}
	m.matched++
	m.next = (i + 1) % int32(len(m.cycle.Steps))
	if i == 0 && (m.cycle.Proven || m.matched > len(m.cycle.Steps)) {
		m.begun = true
	}
	return i
}

// TestCyclicAgainstModel follows random plans with requests left out, repeated or added, and blocks that are freed late, and expects that the
// same requests get their places, and others in the arenas only what is free there. The plan may take what memory it needs.
func TestCyclicAgainstModel(t *testing.T) {
	var sum plainCyclic
	for seed := range uint64(30) {
		m := cyclicAgainstModel(t, seed)
		sum.followed, sum.strayed, sum.jumps = sum.followed+m.followed, sum.strayed+m.strayed, sum.jumps+m.jumps
		sum.blocked, sum.late, sum.welcomed = sum.blocked+m.blocked, sum.late+m.late, sum.welcomed+m.welcomed
	}
	if min(sum.followed, sum.strayed, sum.jumps, sum.blocked, sum.late) < 300 || sum.welcomed < 30 {
		t.Errorf("%+v: the test is too easy", sum)
	}
}

// lending is a block that is in use, and the step of the plan at which it is.
type lending struct {
	ptr   cuda.Ptr
	step  int32
	until int
}

// following makes requests of a Cyclic and of the model.
type following struct {
	t    *testing.T
	rng  *rand.Rand
	a    *Cyclic
	m    *plainCyclic
	live []lending
	now  int // requests
}

// free frees what is due.
func (f *following) free() {
	for i := len(f.live) - 1; i >= 0; i-- {
		if f.live[i].until > f.now {
			continue
		}
		if err := f.a.Free(f.live[i].ptr); err != nil {
			f.t.Fatal(err)
		}
		delete(f.m.placed, f.live[i].step)
		delete(f.m.guests, f.live[i].step)
		f.live = append(f.live[:i], f.live[i+1:]...)
	}
}

// request makes the request of a step of the plan, which lasts as planned or longer.
func (f *following) request(s *Step) {
	b := lending{until: f.now + int(max(s.Lasts, 1)), step: none}
	if f.rng.IntN(40) == 0 {
		b.until += f.rng.IntN(2 * len(f.a.cycle.Steps))
		f.m.late++
	}
	var err error
	if b.ptr, err = f.a.Malloc(s.Size, s.Stream, 0); err != nil {
		f.t.Fatal(err)
	}
	if f.a.begun {
		f.a.target = 1 << 60
	}
	if i, ok := f.a.byPtr.Get(b.ptr); ok && f.a.states[i] == stepLive {
		b.step = i
	}
	want := f.m.malloc(s.Size, s.Stream)
	if want == none && int(b.step) >= len(f.a.cycle.Steps) {
		f.welcome(b.step, s)
	} else if b.step != want {
		f.t.Fatalf("request %d got the place of step %d, want %d", f.now, b.step, want)
	}
	if b.step != none {
		p := f.a.at(b.step)
		if want := f.a.regions[f.a.arenas[p.Arena].region].ptr + cuda.Ptr(p.Offset); b.ptr != want {
			f.t.Fatalf("request %d is at %#x, step %d at %#x", f.now, b.ptr, b.step, want)
		}
	}
	if followed, strayed := f.a.Followed(); followed != f.m.followed || strayed != f.m.strayed {
		f.t.Fatalf("request %d: %d by plan and %d not, want %d and %d", f.now, followed, strayed, f.m.followed, f.m.strayed)
	}
	f.live = append(f.live, b)
	f.now++
}

// welcome notes a guest, which is to have free memory of its stream.
func (f *following) welcome(i int32, s *Step) {
	g := *f.a.at(i)
	if a := &f.a.arenas[g.Arena]; g.Size != s.Size || g.Offset < 0 || g.end() > a.backed || a.stream != s.Stream || !f.m.vacant(&g) {
		f.t.Fatalf("request %d of %d bytes is at %+v of %+v", f.now, s.Size, g, *a)
	}
	f.m.guests[i] = g
	f.m.welcomed++
}

func cyclicAgainstModel(t *testing.T, seed uint64) *plainCyclic {
	rng := rand.New(rand.NewPCG(seed, 59))
	a, err := NewCyclic(sim.New(0, sim.CostTable{}), PlannedStitchConf())
	if err != nil {
		t.Fatal(err)
	}
	cycle := randomCycle(rng, 20+rng.IntN(60), 2)
	for i := range cycle.Steps { // sizes that several steps share
		if k := rng.IntN(i + 1); rng.IntN(3) == 0 && cycle.Steps[k].Size < cycle.Steps[i].Size {
			cycle.Steps[i].Size = cycle.Steps[k].Size
		}
	}
	cycle.Proven = seed%3 > 0
	if err := a.Adopt(cycle); err != nil {
		t.Fatal(err)
	}
	f := &following{t: t, rng: rng, a: a, m: &plainCyclic{cycle: cycle, next: none, placed: map[int32]bool{}, guests: map[int32]Step{}}}
	n := len(cycle.Steps)
	at := rng.IntN(n)
	if seed%2 == 0 { // the first requests that identify a step do so near the beginning of the plan
		at = (n + 2 - gramSize + rng.IntN(3) - 1) % n
	}
	for range 900 {
		for pool := range Pool(2) { // what is not planned does not matter
			if _, err := a.Malloc(int64(pool)*1000, 0, pool); err != nil {
				t.Fatal(err)
			}
		}
		f.free()
		s := &cycle.Steps[at]
		switch rng.IntN(60) {
		case 0:
			at = (at + rng.IntN(5)) % n // some are left out
		case 1:
			at = rng.IntN(n)
		case 2: // one more
			s = &cycle.Steps[rng.IntN(n)]
			at = (at + n - 1) % n
		}
		at = (at + 1) % n
		f.request(s)
	}
	return f.m
}
