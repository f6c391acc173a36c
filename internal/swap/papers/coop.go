package papers

import (
	"math"
	"slices"

	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/evict"
)

// superLinear are the operators whose time grows faster than their output (Coop, section 4.3): what they make is expensive for its bytes.
var superLinear = []swap.OpType{swap.Conv, swap.Linear, swap.Attention}

// Coop is the policy of Zhang et al. (NeurIPS 2023, "Coop: Memory is not a Commodity"): where no free block is large enough, those tensors go
// that lie next to each other, with free blocks between them, make enough room together, and are the cheapest in all (sliding window). What
// super-linear operators make is placed from the lower end of the pool, other tensors from its upper end (cheap tensor partitioning).
// Parameters are updated in place, at the ends: here they are no part of the pool. Memory that operators take beside tensors is counted, and has
// no address.
func Coop(p *draft.Problem) ([]swap.Action, error) {
	return evict.Plan(p, &coop{pool: evict.NewPool(addresses(p))})
}

type coop struct{ pool *evict.Pool }

// Place implements [evict.Memory].
func (c *coop) Place(r *evict.Run, t int32, bytes int64) int64 {
	for {
		upper := t != evict.None && !slices.Contains(superLinear, r.Graph.Ops[r.Graph.Tensors[t].Made].Type)
		lacks, block := r.Lacks(bytes), endFit(c.pool, bytes, upper)
		if lacks <= 0 && t == evict.None {
			return 0
		}
		if lacks <= 0 && block >= 0 {
			c.pool.Put(block, t, bytes, upper)
			return 0
		}
		first, end := window(c.pool.Blocks, bytes, lacks, func(t int32) float64 {
			if !r.Evictable(t) {
				return math.Inf(1)
			}
			return worth(r, t)
		})
		if first == end {
			return max(1, lacks, bytes-c.pool.Largest())
		}
		for _, b := range slices.Clone(c.pool.Blocks[first:end]) {
			if b.Tensor != evict.None {
				r.Evict(b.Tensor)
			}
		}
	}
}

// Drop implements [evict.Memory].
func (c *coop) Drop(t int32) { c.pool.Take(t) }

// endFit returns the free block that has room for some bytes and is lowest, or highest; -1 if there is none.
func endFit(p *evict.Pool, bytes int64, upper bool) int {
	best := -1
	for i, b := range p.Blocks {
		if b.Tensor == evict.None && b.Bytes >= bytes && (upper || best < 0) {
			best = i
		}
	}
	return best
}

// window returns the blocks from first to the one before end, all of them next to each other, that cost least of those that have at least so
// many bytes in all, and so many bytes of tensors; the lowest of equal ones. It returns none if there are none of finite cost.
func window(blocks []evict.Block, bytes, tensors int64, cost func(t int32) float64) (first, end int) {
	costs := make([]float64, len(blocks))
	for i, b := range blocks {
		if b.Tensor != evict.None {
			costs[i] = cost(b.Tensor)
		}
	}
	least := math.Inf(1)
	for low := range blocks {
		sum, room, held := 0.0, int64(0), int64(0)
		for high := low; high < len(blocks) && sum+costs[high] < least; high++ {
			sum += costs[high]
			room += blocks[high].Bytes
			if blocks[high].Tensor != evict.None {
				held += blocks[high].Bytes
			}
			if room >= bytes && held >= tensors {
				first, end, least = low, high+1, sum
				break
			}
		}
	}
	return first, end
}
