// Package repeats finds the parts of a sequence that occur again: the layers, microbatches and iterations of a
// training job, say, in the order of its allocations and frees, without a description of the model.
//
// First come the parts that follow one upon another. All maximal repetitions of the sequence are found as in Bannai, I,
// Inenaga, Nakashima, Takeda and Tsuruta, "The runs theorem" (SIAM J. Comput. 46, 2017): there are fewer than symbols.
// Repetitions of the same content are one class wherever they are, so the layers of one iteration and of the next are found
// together. What is left is searched for equal stretches that lie apart, the longest first. Time is O(n log n) and memory
// linear: stretches are compared by rolling hashes, 16 bytes a symbol, where a suffix array with its ranks, common
// prefixes and range minima takes several times that. Whatever is returned was compared symbol by symbol.
package repeats

import "slices"

// Part is a stretch that occurs at least twice.
type Part struct {
	Length int   // symbols
	At     []int // where it occurs, ascending
}

// Find returns parts of at least so many symbols. No two occurrences overlap, of one part or of two. The parts that
// save most come first, counting all occurrences but one.
//
// pairs is nil, or holds for each symbol the index of the one it belongs with, its own if with none, as an allocation
// and its free: a symbol then counts when its pair is in the same occurrence, and parts that follow one upon another
// begin where the fewest pairs are torn.
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
