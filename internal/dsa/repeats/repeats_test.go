package repeats

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// word returns n symbols of an alphabet.
func word(rng *rand.Rand, n int, alphabet uint64) []uint64 {
	w := make([]uint64, n)
	for i := range w {
		w[i] = rng.Uint64N(alphabet)
	}
	return w
}

// join concatenates words.
func join(words ...[]uint64) []uint64 { return slices.Concat(words...) }

// check fails the test when occurrences of parts differ, overlap, or are too few or too short.
func check(t *testing.T, symbols []uint64, parts []Part, least int) (covered int) {
	t.Helper()
	taken := make([]bool, len(symbols))
	for _, p := range parts {
		if p.Length < least || len(p.At) < 2 || !slices.IsSorted(p.At) {
			t.Fatalf("part of %d symbols at %v", p.Length, p.At)
		}
		for _, at := range p.At {
			if !slices.Equal(symbols[at:at+p.Length], symbols[p.At[0]:p.At[0]+p.Length]) {
				t.Fatalf("%d symbols at %d and %d differ", p.Length, p.At[0], at)
			}
			if slices.Contains(taken[at:at+p.Length], true) {
				t.Fatalf("%d symbols at %d overlap others", p.Length, at)
			}
			for i := range p.Length {
				taken[at+i] = true
			}
			covered += p.Length
		}
	}
	return covered
}

func TestFind(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	layer, back, head, other := word(rng, 40, 1e9), word(rng, 70, 1e9), word(rng, 13, 1e9), word(rng, 25, 1e9)
	repeat := func(w []uint64, n int) []uint64 { return slices.Repeat(w, n) }
	pass := join(repeat(layer, 32), head, repeat(back, 32))
	noise := func() []uint64 { return word(rng, 30, 1e9) }
	for _, c := range []struct {
		name    string
		symbols []uint64
		parts   []Part // only the length and the number of occurrences
	}{
		{"layers", join(head, repeat(layer, 5), other), []Part{{40, make([]int, 5)}}},
		{"forward and backward", pass, []Part{{70, make([]int, 32)}, {40, make([]int, 32)}}},
		{"iterations", join(head, repeat(pass, 9)), []Part{{len(pass), make([]int, 9)}}},
		{"layers of two iterations", join(pass, noise(), pass), []Part{{70, make([]int, 64)}, {40, make([]int, 64)}, {13, make([]int, 2)}}},
		{"apart", join(noise(), layer, noise(), layer, noise(), layer), []Part{{40, make([]int, 3)}}},
		{"short and long apart", join(layer, noise(), back, noise(), layer, noise(), back), []Part{{70, make([]int, 2)}, {40, make([]int, 2)}}},
		{"a part that ends early", join(repeat(layer, 3), layer[:20]), []Part{{40, make([]int, 3)}}},
		{"too short", repeat(word(rng, 7, 1e9), 2), nil},
		{"nothing", word(rng, 5000, 1e9), nil},
		{"empty", nil, nil},
	} {
		parts := Find(c.symbols, nil, 8)
		check(t, c.symbols, parts, 8)
		same := slices.EqualFunc(parts, c.parts, func(a, b Part) bool { return a.Length == b.Length && len(a.At) == len(b.At) })
		if !same {
			t.Errorf("%s: found %v", c.name, parts)
		}
	}
}

func TestFindOneSymbol(t *testing.T) {
	symbols := make([]uint64, 1000)
	if covered := check(t, symbols, Find(symbols, nil, 1), 1); covered != 1000 {
		t.Errorf("parts of one symbol cover %d of 1000", covered)
	}
	if covered := check(t, symbols, Find(symbols, nil, 8), 8); covered < 900 {
		t.Errorf("parts of eight symbols cover %d of 1000", covered)
	}
}

// TestRuns compares with a search that tries every period.
func TestRuns(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		symbols := word(rng, 1+rng.IntN(120), 1+rng.Uint64N(3))
		if seed%2 == 0 {
			symbols = slices.Repeat(symbols[:1+len(symbols)/8], 5)
		}
		var expected []run
		for period := 1; period <= len(symbols)/2; period++ {
			for lo := 0; lo < len(symbols); lo++ {
				hi := lo + period
				for hi < len(symbols) && symbols[hi] == symbols[hi-period] {
					hi++
				}
				primitive := !slices.ContainsFunc(expected, func(r run) bool { return r.lo <= lo && hi <= r.hi && period%r.period == 0 })
				if hi-lo >= 2*period && primitive {
					expected = append(expected, run{lo, hi, period})
				}
				lo = max(lo, hi-period)
			}
		}
		slices.SortFunc(expected, func(a, b run) int {
			if a.lo != b.lo {
				return a.lo - b.lo
			}
			return a.period - b.period
		})
		if found := newText(symbols).runs(1); !slices.Equal(found, expected) {
			t.Fatalf("seed %d, %v: runs %v, expected %v", seed, symbols, found, expected)
		}
	}
}

func TestAnySequence(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		words := [][]uint64{word(rng, 1+rng.IntN(30), 4), word(rng, 1+rng.IntN(60), 4), word(rng, 5, 2)}
		var symbols []uint64
		for range rng.IntN(40) {
			symbols = append(symbols, words[rng.IntN(len(words))]...)
		}
		pairs := make([]int32, len(symbols))
		for i := range pairs {
			pairs[i] = int32(i)
		}
		for range len(pairs) / 3 {
			i, j := rng.IntN(len(pairs)), rng.IntN(len(pairs))
			if int(pairs[i]) == i && int(pairs[j]) == j {
				pairs[i], pairs[j] = int32(j), int32(i)
			}
		}
		least := 1 + rng.IntN(12)
		check(t, symbols, Find(symbols, nil, least), least)
		check(t, symbols, Find(symbols, pairs, least), least)
	}
}

// TestCut has layers that can be cut in only one place without tearing a pair.
func TestCut(t *testing.T) {
	const layers, length, border = 6, 20, 13
	rng := rand.New(rand.NewPCG(4, 4))
	symbols := slices.Repeat(word(rng, length, 1e9), layers)
	pairs := make([]int32, len(symbols))
	for i := range pairs {
		pairs[i] = int32(i)
	}
	for begin := border; begin+length <= len(symbols); begin += length {
		for k := range length / 2 {
			pairs[begin+k], pairs[begin+length-1-k] = int32(begin+length-1-k), int32(begin+k)
		}
	}
	parts := Find(symbols, pairs, 8)
	if len(parts) == 0 || len(parts[0].At) != layers-1 || parts[0].At[0] != border {
		t.Errorf("found %v, expected %d parts from %d on", parts, layers-1, border)
	}
}

func TestMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("a million symbols")
	}
	for name, symbols := range millions() {
		start := time.Now()
		parts := Find(symbols, nil, 8)
		took := time.Since(start)
		covered := check(t, symbols, parts, 8)
		t.Logf("%s: %d parts cover %.1f%%, %v", name, len(parts), 100*float64(covered)/float64(len(symbols)), took)
		if took > 20*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

// millions returns sequences of a million symbols.
func millions() map[string][]uint64 {
	const n = 1_000_000
	rng := rand.New(rand.NewPCG(5, 5))
	layer, back := word(rng, 50, 300), word(rng, 80, 300)
	iteration := join(slices.Repeat(layer, 80), word(rng, 20, 300), slices.Repeat(back, 80))
	var varied, apart []uint64
	for len(varied) < n {
		scale := rng.Uint64N(1 << 40)
		for _, s := range iteration {
			varied = append(varied, s+scale)
		}
	}
	for block := word(rng, 10_000, 1e9); len(apart) < n; {
		apart = append(append(apart, block...), rng.Uint64())
	}
	fibonacci := []uint64{0, 1}
	for a, b := 1, 2; len(fibonacci) < n; a, b = b, len(fibonacci) {
		fibonacci = append(fibonacci, fibonacci[:a]...)
	}
	return map[string][]uint64{
		"random":               word(rng, n, 1<<40),
		"random bits":          word(rng, n, 2),
		"one symbol":           make([]uint64, n),
		"equal iterations":     slices.Repeat(iteration, n/len(iteration)),
		"iterations that vary": varied,
		"far apart":            apart,
		"Fibonacci word":       fibonacci,
	}
}

func BenchmarkFind(b *testing.B) {
	for name, symbols := range millions() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Find(symbols, nil, 8)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(symbols)), "ns/symbol")
		})
	}
}
