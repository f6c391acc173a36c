package repeats

import "math/bits"

// text is a sequence that can compare its stretches quickly.
type text struct {
	symbols []uint64
	prefix  []uint64 // the hash of the first i symbols
	power   []uint64 // base to the power of i
}

const (
	prime = 1<<61 - 1
	base  = 0x0f1e_2d3c_4b5a_6978
)

func newText(symbols []uint64) *text {
	n := len(symbols)
	t := &text{symbols, make([]uint64, n+1), make([]uint64, n+1)}
	t.power[0] = 1
	for i, s := range symbols {
		t.prefix[i+1] = reduce(times(t.prefix[i], base) + reduce(s))
		t.power[i+1] = times(t.power[i], base)
	}
	return t
}

// reduce brings x below the prime.
func reduce(x uint64) uint64 {
	x = x&prime + x>>61
	if x >= prime {
		x -= prime
	}
	return x
}

// times multiplies modulo the prime.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return reduce(low&prime + (high<<3 | low>>61))
}

// hash returns the hash of the n symbols from i on.
func (t *text) hash(i, n int) uint64 {
	return reduce(t.prefix[i+n] + prime - times(t.prefix[i], t.power[n]))
}

// same reports whether the n symbols from i on and from j on have the same hash.
func (t *text) same(i, j, n int) bool { return t.hash(i, n) == t.hash(j, n) }

// equal reports whether the n symbols from i on equal those from j on.
func (t *text) equal(i, j, n int) bool {
	a, b := t.symbols[i:i+n], t.symbols[j:j+n]
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

// short is the number of symbols that are compared one by one before hashes are used.
const short = 16

// ahead returns how many symbols from i on equal those from j on.
func (t *text) ahead(i, j int) int {
	limit := len(t.symbols) - max(i, j)
	return extent(limit, func(k int) bool { return t.symbols[i+k] == t.symbols[j+k] },
		func(k, n int) bool { return t.same(i+k, j+k, n) })
}

// behind returns how many symbols before i equal those before j.
func (t *text) behind(i, j int) int {
	limit := min(i, j)
	return extent(limit, func(k int) bool { return t.symbols[i-1-k] == t.symbols[j-1-k] },
		func(k, n int) bool { return t.same(i-k-n, j-k-n, n) })
}

// extent returns how far two stretches agree, up to the limit, in steps that double and then halve. one compares
// the symbols at distance k, many the n symbols from there on.
func extent(limit int, one func(k int) bool, many func(k, n int) bool) int {
	k := 0
	for ; k < min(limit, short); k++ {
		if !one(k) {
			return k
		}
	}
	step := short
	for k+step <= limit && many(k, step) {
		k += step
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if k+step <= limit && many(k, step) {
			k += step
		}
	}
	return k
}
