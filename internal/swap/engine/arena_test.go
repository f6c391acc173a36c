package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// land is an arena and what a test knows of it.
type land struct {
	t    testing.TB
	a    arena
	live map[int32]holding
	read map[int64]int64 // the last reader of each place, in units of slotAlign
}

type holding struct{ at, size int64 }

func newLand(t testing.TB, size int64) *land {
	return &land{t: t, a: newArena(size), live: map[int32]holding{}, read: map[int64]int64{}}
}

// alloc takes a slot, and checks that it is nobody else's and that no free slot would have been a better one.
func (l *land) alloc(n int64) int32 {
	before := l.frees()
	largest := l.a.largest()
	id := l.a.alloc(n)
	if id == none {
		if largest >= n {
			l.t.Fatalf("no slot of %d bytes, with %d free in one piece", n, largest)
		}
		return none
	}
	s := l.a.slots[id]
	if s.size < n || s.size >= n+slotAlign || s.at < 0 || s.at+s.size > l.a.size {
		l.t.Fatalf("a slot of %d bytes is [%d, %d) of %d", n, s.at, s.at+s.size, l.a.size)
	}
	for other, h := range l.live {
		if s.at < h.at+h.size && h.at < s.at+s.size {
			l.t.Fatalf("slots %d and %d share bytes", id, other)
		}
	}
	for at := s.at; at < s.at+s.size; at += slotAlign {
		if reader := l.read[at/slotAlign]; reader > s.reader {
			l.t.Fatalf("byte %d was read by %d, the slot says %d", at, reader, s.reader)
		}
	}
	from := slices.IndexFunc(before, func(h holding) bool { return h.at == s.at })
	for i, h := range before {
		last := i == len(before)-1 && h.at+h.size == l.a.size
		if h.size >= s.size && h.size < before[from].size && !last {
			l.t.Fatalf("%d bytes come from %d, with %d free", n, before[from].size, h.size)
		}
	}
	l.live[id] = holding{s.at, s.size}
	return id
}

func (l *land) give(id int32, reader int64) {
	h := l.live[id]
	for at := h.at; at < h.at+h.size; at += slotAlign {
		l.read[at/slotAlign] = max(l.read[at/slotAlign], reader)
	}
	delete(l.live, id)
	l.a.give(id, reader)
}

// frees returns the free slots by place, after it has checked that slots cover the range and that free ones do not touch.
func (l *land) frees() (frees []holding) {
	l.t.Helper()
	if l.a.last == none {
		return nil
	}
	at, before, n := l.a.size, true, 0
	for id := l.a.last; id != none; id = l.a.slots[id].prev {
		s := l.a.slots[id]
		if s.at+s.size != at || s.size <= 0 {
			l.t.Fatalf("slot %d is [%d, %d), the next begins at %d", id, s.at, s.at+s.size, at)
		}
		if _, used := l.live[id]; used != s.used || !used && !before {
			l.t.Fatalf("slot %d is used: %v, the next one: %v; want %v", id, s.used, before, used)
		}
		if !s.used {
			frees = append(frees, holding{s.at, s.size})
		}
		at, before = s.at, s.used
		n++
	}
	rows := len(l.a.free)
	if !l.a.slots[l.a.last].used {
		rows++
	}
	if at != 0 || n+len(l.a.unused) != len(l.a.slots) || rows != len(frees) {
		l.t.Fatalf("the first slot begins at %d; %d slots and %d unused of %d; %d rows for %d free", at, n, len(l.a.unused),
			len(l.a.slots), rows, len(frees))
	}
	slices.Reverse(frees)
	return frees
}

// end gives everything back, in an order that the choices make, and checks that all is one free slot again.
func (l *land) end(choose func(n int) int) {
	ids := make([]int32, 0, len(l.live))
	for id := range l.live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for len(ids) > 0 {
		i := choose(len(ids))
		l.give(ids[i], 0)
		ids = slices.Delete(ids, i, i+1)
	}
	want := []holding{{0, l.a.size}}
	if l.a.size == 0 {
		want = nil
	}
	if frees := l.frees(); !slices.Equal(frees, want) {
		l.t.Fatalf("all was given back, and what is free is %v", frees)
	}
}

// shrink ends the range where the last slot in use does, or a little later.
func (l *land) shrink(beyond int64) {
	var end int64
	for _, h := range l.live {
		end = max(end, h.at+h.size)
	}
	l.a.shrink(min(end+beyond/slotAlign*slotAlign, l.a.size))
	l.frees()
}

// randomLife allocates and gives back, as choices say.
func randomLife(t testing.TB, steps int, choose func(n int) int) {
	l := newLand(t, int64(1+choose(2000))*slotAlign)
	var order []int32
	for step := range steps {
		switch choose(16) {
		case 0, 1, 2, 3, 4, 5, 6, 7:
			most := 4000
			if choose(8) == 0 {
				most = 400_000
			}
			if id := l.alloc(int64(1 + choose(most))); id != none {
				order = append(order, id)
			}
		case 8:
			if choose(64) == 0 && l.a.last != none && !l.a.slots[l.a.last].used {
				l.shrink(int64(choose(100_000)))
			}
		default:
			if len(order) > 0 {
				i := choose(len(order))
				l.give(order[i], int64(step))
				order = slices.Delete(order, i, i+1)
			}
		}
	}
	l.end(choose)
}

func TestArena(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		randomLife(t, 400, rng.IntN)
	}
}

func FuzzArena(f *testing.F) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 2000)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<13 {
			return
		}
		choose := func(n int) int {
			if len(data) < 2 {
				data = nil
				return 0
			}
			x := int(data[0])<<8 | int(data[1])
			data = data[2:]
			return x * n >> 16
		}
		randomLife(t, len(data)/5, choose)
	})
}

func TestArenaEdges(t *testing.T) {
	l := newLand(t, 10*slotAlign)
	for _, n := range []int64{10*slotAlign + 1, 1<<63 - 1} {
		if id := l.alloc(n); id != none {
			t.Errorf("%d bytes are at %d", n, l.a.slots[id].at)
		}
	}
	whole := l.alloc(10 * slotAlign)
	if whole == none || l.a.largest() != 0 || l.alloc(1) != none {
		t.Errorf("slot %d, then %d bytes are free", whole, l.a.largest())
	}
	l.give(whole, 3)
	if l.a.slots[l.alloc(1)].reader != 3 {
		t.Error("the last reader is forgotten")
	}
	l.shrink(0)
	if l.a.size != slotAlign || l.alloc(1) != none {
		t.Errorf("%d bytes after the range ends behind the first slot", l.a.size)
	}
	l.end(func(int) int { return 0 })
	l.a.shrink(0)
	if l.alloc(1) != none || l.a.largest() != 0 {
		t.Error("a slot of nothing")
	}
}

// TestArenaKeepsTheEnd: what was never used is used last.
func TestArenaKeepsTheEnd(t *testing.T) {
	l := newLand(t, 12*slotAlign)
	a, b := l.alloc(10*slotAlign), l.alloc(slotAlign)
	l.give(a, 0)
	if id := l.alloc(1); l.a.slots[id].at != 0 {
		t.Errorf("a slot at %d, with a gap before and one byte less at the end", l.a.slots[id].at)
	}
	l.give(b, 0)
}

// BenchmarkArena takes and gives slots of a step that keeps a thousand.
func BenchmarkArena(b *testing.B) {
	a := newArena(1 << 40)
	rng := rand.New(rand.NewPCG(1, 3))
	var live [1000]int32
	for i := range live {
		live[i] = a.alloc(1 + rng.Int64N(64<<20))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		a.give(live[i*7%1000], 0)
		live[i*7%1000] = a.alloc(1 + rng.Int64N(64<<20))
	}
}
