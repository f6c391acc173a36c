package overview

import (
	"cmp"
	"slices"
	"strconv"

	"gm/internal/units"
)

// Group is a set of blocks with something in common.
type Group struct {
	Name   string  `json:"name"`
	Bytes  int64   `json:"bytes"`
	Blocks int64   `json:"blocks"`
	Share  float64 `json:"share"` // of the live bytes
}

// request is the key by which allocations without stacks are grouped.
type request struct {
	size   int64
	stream int64
}

func (r request) String() string {
	return units.Bytes(r.size).String() + " on stream " + strconv.FormatInt(r.stream, 10)
}

// The upper bounds of size classes are 4 KiB and its multiples by powers of 8.
const (
	smallestClass = 4 << 10
	classFactor   = 8
)

// SizeClass returns the number of the size class of a size in bytes.
func SizeClass(size int64) int {
	n := 0
	for end := int64(smallestClass); size > end; end *= classFactor {
		n++
	}
	return n
}

// ClassName returns a text that says which sizes a class contains.
func ClassName(n int) string {
	end := units.Bytes(smallestClass)
	for range n {
		end *= classFactor
	}
	if n == 0 {
		return "up to " + end.String()
	}
	return "over " + (end / classFactor).String() + ", up to " + end.String()
}

// grouping sums up blocks by key.
type grouping[K comparable] map[K]*Group

func (g grouping[K]) add(key K, bytes int64) { g.join(key, &Group{Bytes: bytes, Blocks: 1}) }

// join adds all blocks of another grouping.
func (g grouping[K]) join(key K, other *Group) {
	sum := g[key]
	if sum == nil {
		sum = &Group{}
		g[key] = sum
	}
	sum.Bytes += other.Bytes
	sum.Blocks += other.Blocks
}

// share returns a number of bytes as a fraction of the live bytes.
func share(bytes, live int64) float64 {
	if live == 0 {
		return 0
	}
	return float64(bytes) / float64(live)
}

// list returns the n groups with the most bytes.
func (g grouping[K]) list(live int64, n int, name func(K) string) []Group {
	all := make([]Group, 0, len(g))
	for key, sum := range g {
		all = append(all, Group{name(key), sum.Bytes, sum.Blocks, share(sum.Bytes, live)})
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), n)]
}
