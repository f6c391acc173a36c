package partition_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gm/internal/swap/partition"
	"gm/internal/swap/partition/partitiontest"
)

// plainly runs a choice operator by operator, with a list of what is in memory, and returns the bytes that are in use at each and the time
// that it recomputes.
func plainly(p *partition.Problem, saved []bool) (loads []int64, ns int64) {
	maker := map[int32]int{}
	for i, op := range p.Ops {
		for _, v := range op.Makes {
			maker[v] = i
		}
	}
	var run []int // the operators of both passes
	for i := range p.Forward {
		run = append(run, i)
	}
	wanted := map[int]bool{}
	var want func(op int)
	want = func(op int) {
		for _, v := range p.Ops[op].Reads {
			if from := maker[v]; from < p.Forward && !saved[v] && !wanted[from] {
				wanted[from] = true
				want(from)
			}
		}
	}
	for i := p.Forward; i < len(p.Ops); i++ {
		want(i)
	}
	needed := map[int32]bool{}
	for i, op := range p.Ops {
		if i >= p.Forward || wanted[i] {
			for _, v := range op.Reads {
				needed[v] = true
			}
		}
	}
	begun, there := map[int]bool{}, map[int]bool{}
	lacks := func(v int32) bool { return maker[v] < p.Forward && !saved[v] && !there[maker[v]] }
	var add func(op int)
	add = func(op int) {
		begun[op] = true
		for _, v := range p.Ops[op].Reads {
			if lacks(v) {
				add(maker[v])
			}
		}
		run = append(run, op)
		there[op] = true
		if op < p.Forward && p.Ops[op].Fused {
			for _, v := range p.Ops[op].Makes {
				for next := range p.Forward {
					fused := p.Ops[next].Fused && slices.Contains(p.Ops[next].Reads, v)
					if fused && wanted[next] && !begun[next] && !slices.ContainsFunc(p.Ops[next].Reads, lacks) {
						add(next)
					}
				}
			}
		}
	}
	for i := p.Forward; i < len(p.Ops); i++ {
		add(i)
	}
	reads := through(p)
	memory := map[copied]bool{}
	for at, op := range run {
		again := at >= p.Forward && op < p.Forward
		if again {
			ns += p.Ops[op].NS
		}
		for _, v := range p.Ops[op].Makes {
			memory[copied{v, again}] = true
		}
		var used int64
		for x := range memory {
			value, forward := p.Values[x.value], maker[x.value] < p.Forward
			if x.again || saved[x.value] && needed[x.value] || value.Kept || !forward || !value.Inlined {
				used += value.Bytes
			}
		}
		loads = append(loads, used)
		for x := range memory {
			kept := p.Values[x.value].Kept && !x.again
			saved := saved[x.value] || maker[x.value] >= p.Forward
			if !kept && !readLater(p, reads, run, at, x, saved) {
				delete(memory, x)
			}
		}
	}
	return loads, ns
}

// copied is a value, or what it was recomputed to.
type copied struct {
	value int32
	again bool
}

// readLater reports whether what is in memory is read behind a place of a run: the first copy by the forward pass, and by the backward pass
// where it is saved; the other one by the backward pass.
func readLater(p *partition.Problem, reads [][]int32, run []int, at int, x copied, saved bool) bool {
	for later := at + 1; later < len(run); later++ {
		backward, read := later >= p.Forward, p.Ops[run[later]].Reads
		if !backward {
			read = reads[later]
		}
		if slices.Contains(read, x.value) && (x.again && backward && !saved || !x.again && (!backward || saved)) {
			return true
		}
	}
	return false
}

// through returns what each operator of the forward pass reads, and what that is computed from where it is read.
func through(p *partition.Problem) [][]int32 {
	from, reads := map[int32][]int32{}, make([][]int32, p.Forward)
	for i := range reads {
		for _, v := range p.Ops[i].Reads {
			reads[i] = append(append(reads[i], v), from[v]...)
		}
		for _, v := range p.Ops[i].Makes {
			if p.Values[v].Inlined {
				from[v] = reads[i]
			}
		}
	}
	return reads
}

// TestMachine compares the machine with a plain one on random problems and choices.
func TestMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		p := partitiontest.Random(r, 1+r.IntN(12))
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		m := partition.NewMachine(p)
		for range 3 { // a machine forgets what it ran before
			saved := make([]bool, len(p.Values))
			for _, v := range partitiontest.Fixed(p) {
				saved[v] = true
			}
			for _, v := range partitiontest.Free(p) {
				saved[v] = r.IntN(2) == 0
			}
			loads, ns := plainly(p, saved)
			limit := r.Int64N(slices.Max(loads) + 1)
			want := partition.Cost{Peak: slices.Max(loads), NS: ns, Misses: -1}
			for _, used := range loads {
				if used > limit {
					want.Over += used - limit
					want.Places++
				}
			}
			if c := m.Run(saved, limit); c != want {
				t.Fatalf("%+v\nsaved %v: %+v, want %+v under a limit of %d", p, saved, c, want, limit)
			}
		}
	}
}

// TestMisses saves nothing where an operator cannot run once more.
func TestMisses(t *testing.T) {
	p := &partition.Problem{Forward: 1, Values: []partition.Value{{Bytes: 1}}, Ops: []partition.Op{{Makes: []int32{0}}, {Reads: []int32{0}}}}
	m := partition.NewMachine(p)
	if c := m.Run([]bool{false}, 1); c.Misses != 0 {
		t.Errorf("not saved: %+v", c)
	}
	if c := m.Run([]bool{true}, 1); c.Misses != -1 || c.Peak != 1 {
		t.Errorf("saved: %+v", c)
	}
}
