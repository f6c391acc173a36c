package repeats

import (
	"cmp"
	"slices"
)

// run is a stretch [lo, hi) that repeats itself after a period, at least twice as long as that and not to be extended.
type run struct {
	lo, hi, period int
}

// runs returns those of a period of at least so many symbols, by where they begin.
func (t *text) runs(least int) []run {
	found := t.appendRuns(nil, least, false)
	found = t.appendRuns(found, least, true)
	slices.SortFunc(found, func(a, b run) int {
		return cmp.Or(a.lo-b.lo, a.period-b.period, a.hi-b.hi)
	})
	return slices.Compact(found)
}

// appendRuns adds the runs that show in one order of the symbols, the natural one or its reverse: each run, in one of
// the two, begins after at most a period with a Lyndon word, and is that word repeated.
func (t *text) appendRuns(found []run, least int, reversed bool) []run {
	n := len(t.symbols)
	after := make([]int32, n) // where the longest Lyndon word from i on ends
	for i := n - 1; i >= 0; i-- {
		j := i + 1
		for j < n && t.less(i, j, reversed) {
			j = int(after[j])
		}
		after[i] = int32(j)
		period := j - i
		if period < least {
			continue
		}
		left := t.behind(i, j)
		if left > period {
			continue // seen from the word before
		}
		if right := t.ahead(i, j); left+right >= period {
			found = append(found, run{i - left, j + right, period})
		}
	}
	return found
}

// less compares what follows from i on with what follows from j on, j being after i.
func (t *text) less(i, j int, reversed bool) bool {
	k := t.ahead(i, j)
	if j+k == len(t.symbols) {
		return false
	}
	return t.symbols[i+k] < t.symbols[j+k] != reversed
}

// rotation returns where, within its first period, the least rotation of a run begins.
func (t *text) rotation(r run) int {
	i, j, k := 0, 1, 0
	at := func(x int) uint64 { return t.symbols[r.lo+x%r.period] }
	for i < r.period && j < r.period && k < r.period {
		a, b := at(i+k), at(j+k)
		switch {
		case a == b:
			k++
			continue
		case a > b:
			i += k + 1
		default:
			j += k + 1
		}
		if i == j {
			j++
		}
		k = 0
	}
	return r.lo + min(i, j)
}
