// Package partitiontest makes random problems for the tests of package partition and of its search.
package partitiontest

import (
	"math/rand/v2"

	"gm/internal/swap/partition"
)

// Random returns a network of some layers at random, and its backward pass, which reads some of what the layers made.
func Random(r *rand.Rand, layers int) *partition.Problem {
	p := &partition.Problem{}
	for i := range layers {
		op := partition.Op{NS: r.Int64N(100), Reads: some(r, len(p.Values), 3), Able: i > 0 && r.IntN(8) > 0, Fused: r.IntN(2) == 0}
		for range 1 + r.IntN(8)/7 {
			op.Makes = append(op.Makes, int32(len(p.Values)))
			p.Values = append(p.Values, partition.Value{Bytes: r.Int64N(50), Kept: i == layers-1 || r.IntN(12) == 0, Inlined: r.IntN(4) == 0,
				Barred: op.Able && r.IntN(8) == 0})
		}
		p.Ops = append(p.Ops, op)
	}
	p.Forward = len(p.Ops)
	for forward := int32(len(p.Values)); forward > 0; {
		last := int32(len(p.Values))
		op := partition.Op{NS: r.Int64N(100), Reads: some(r, int(forward), 2), Makes: []int32{last}}
		if last > int32(len(p.Values)) || len(p.Ops) > p.Forward {
			op.Reads = append(op.Reads, last-1)
		}
		p.Values = append(p.Values, partition.Value{Bytes: r.Int64N(50), Kept: r.IntN(3) == 0})
		p.Ops = append(p.Ops, op)
		forward -= 1 + r.Int32N(2)
	}
	return p
}

// some returns some of n values, rather late ones.
func some(r *rand.Rand, n, most int) []int32 {
	var found []int32
	seen := map[int32]bool{}
	for range min(n, r.IntN(most+1)) {
		v := int32(n-1) - min(r.Int32N(int32(n)), r.Int32N(int32(n)))
		if !seen[v] {
			seen[v] = true
			found = append(found, v)
		}
	}
	return found
}

// Fixed returns the values of the forward pass that cannot be recomputed.
func Fixed(p *partition.Problem) []int32 { return values(p, false) }

// Free returns the values of the forward pass that can be saved or recomputed.
func Free(p *partition.Problem) []int32 { return values(p, true) }

func values(p *partition.Problem, able bool) (found []int32) {
	for i := range p.Ops[:p.Forward] {
		for _, v := range p.Ops[i].Makes {
			if p.Ops[i].Able == able && !p.Values[v].Barred {
				found = append(found, v)
			}
		}
	}
	return found
}
