// Package repeats finds the parts of a sequence that occur again. In the allocations and frees of a training job these are layers,
// microbatches and iterations; no description of the model is needed.
//
// It first finds parts whose occurrences follow one another. All maximal repetitions of the sequence are found as in Bannai, I,
// Inenaga, Nakashima, Takeda and Tsuruta, "The runs theorem" (SIAM J. Comput. 46, 2017): there are fewer than symbols.
// Repetitions of the same content form one class wherever they are, so the layers of all iterations are found
// together. The rest is searched for equal stretches that lie apart, the longest first. Time is O(n log n) and memory
// is linear: stretches are compared by rolling hashes, 16 bytes per symbol, where a suffix array with its ranks, common
// prefixes and range minima takes several times that. All results are verified symbol by symbol.
package repeats

import "slices"

// Part is a stretch that occurs at least twice.
type Part struct {
	Length int   // symbols
	At     []int // where it occurs, ascending
}

// Find returns parts of at least the given number of symbols. No two occurrences overlap, of the same part or of different ones. The
// parts that save the most symbols come first, counting all occurrences except one.
//
// pairs may be nil. Otherwise it holds for each symbol the index of its partner, such as the free of an allocation, or its own index if
// it has none. Then a symbol counts only when its partner is in the same occurrence, and adjacent occurrences are cut
// where the fewest pairs are torn.
func Find(symbols []uint64, pairs []int32, least int) []Part {
	least = max(least, 1)
	if len(symbols) < 2*least {
		return nil
	}
	t := newText(symbols)
	c := cover{text: t, taken: make([]bool, len(symbols))}
	classes := classify(t, t.runs(least))
	for i := range classes {
		classes[i].cut(pairs)
	}
	slices.SortStableFunc(classes, func(a, b class) int { return b.gain - a.gain })
	for i := range classes {
		if classes[i].gain > 0 {
			c.tandem(&classes[i])
		}
	}
	c.apart(least)
	return c.parts
}
