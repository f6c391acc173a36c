package papers

import (
	"math"

	"gm/internal/swap"
	"gm/internal/swap/draft"
	"gm/internal/swap/evict"
)

// DTR is dynamic tensor rematerialization (Kirisame et al., ICLR 2021): before an operator that does not fit, the tensor goes that is cheapest to
// recompute with all evicted ones around it, by its bytes and by how long it was not used (h_DTR-eq). Where tensors are is up to an allocator that
// works as PyTorch's does: a tensor goes to the smallest free block that has room, and blocks are split and joined. DTR does not know of it: it
// evicts until some free block is large enough. Memory that operators take beside tensors is counted, and has no address.
func DTR(p *draft.Problem) ([]swap.Action, error) {
	return evict.Plan(p, &dtr{pool: evict.NewPool(addresses(p))})
}

// addresses returns the bytes of a pool for the tensors of a step: the limit but for what is never free, as parameters are.
func addresses(p *draft.Problem) int64 {
	least := int64(math.MaxInt64)
	for i := range p.Graph.Ops {
		least = min(least, p.Graph.Ops[i].Base)
	}
	return p.Limits.Device - least
}

type dtr struct{ pool *evict.Pool }

// Place implements [evict.Memory].
func (d *dtr) Place(r *evict.Run, t int32, bytes int64) int64 {
	for {
		lacks := r.Lacks(bytes)
		block := bestFit(d.pool, bytes)
		if lacks <= 0 && t == evict.None {
			return 0
		}
		if lacks <= 0 && block >= 0 {
			d.pool.Put(block, t, bytes, false)
			return 0
		}
		victim := d.victim(r)
		if victim == evict.None {
			return max(lacks, bytes-d.pool.Largest())
		}
		r.Evict(victim)
	}
}

// Drop implements [evict.Memory].
func (d *dtr) Drop(t int32) { d.pool.Take(t) }

// bestFit returns the smallest free block that has room for some bytes, the lowest of those; -1 if there is none.
func bestFit(p *evict.Pool, bytes int64) int {
	best := -1
	for i, b := range p.Blocks {
		if b.Tensor == evict.None && b.Bytes >= bytes && (best < 0 || b.Bytes < p.Blocks[best].Bytes) {
			best = i
		}
	}
	return best
}

// victim returns the tensor that goes first, of equal ones the lowest, or evict.None.
func (d *dtr) victim(r *evict.Run) int32 {
	victim, least := evict.None, math.Inf(1)
	for _, b := range d.pool.Blocks {
		if b.Tensor == evict.None || !r.Evictable(b.Tensor) {
			continue
		}
		if h := worth(r, b.Tensor) / float64(b.Bytes); h < least {
			victim, least = b.Tensor, h
		}
	}
	return victim
}

// worth is what a tensor and all evicted ones around it take to recompute, over how long it was not used (in any unit).
func worth(r *evict.Run, t int32) float64 { return float64(r.Costs.Of(t)) / float64(r.Stale(t)) }
