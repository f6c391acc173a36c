package repeats

import (
	"cmp"
	"slices"
)

// run is a maximal stretch [lo, hi) with a period, at least two periods long.
type run struct {
	lo, hi, period int
}

// runs returns the runs whose period is at least the given number of symbols, by their beginnings.
func (t *text) runs(least int) []run {
	found := t.appendRuns(nil, least, false)
	found = t.appendRuns(found, least, true)
	slices.SortFunc(found, func(a, b run) int {
		return cmp.Or(a.lo-b.lo, a.period-b.period, a.hi-b.hi)
	})
	return slices.Compact(found)
}

// appendRuns adds the runs that are found with one order of the symbols, the natural one or its reverse. With one of them, each run
// is a repeated Lyndon word that begins within the first period.
func (t *text) appendRuns(found []run, least int, reversed bool) []run {
	n := len(t.symbols)
	after := make([]int32, n) // the end of the longest Lyndon word that begins at i
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
			continue // found from the word before
		}
		if right := t.ahead(i, j); left+right >= period {
			found = append(found, run{i - left, j + right, period})
		}
	}
	return found
}

// less compares the suffixes that begin at i and at j, where j is after i.
func (t *text) less(i, j int, reversed bool) bool {
	k := t.ahead(i, j)
	if j+k == len(t.symbols) {
		return false
	}
	return t.symbols[i+k] < t.symbols[j+k] != reversed
}

// rotation returns the beginning of the least rotation of a run, within its first period.
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
