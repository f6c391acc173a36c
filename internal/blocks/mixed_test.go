package blocks

import (
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// BenchmarkMixed frees a block and allocates another in its place, in steps that make the same requests, with 50 to 400 blocks live.
func BenchmarkMixed(b *testing.B) {
	const step, least, most = 5000, 50, 400
	bases := [...]int64{512, 4096, 65536, 1 << 20, 3 << 20, 12 << 20, 40 << 20}
	for _, spec := range candidates(b) {
		b.Run(spec.Text, func(b *testing.B) {
			a := spec.open(b, sim.New(0, sim.H200()))
			var ptrs [most]cuda.Ptr
			var rng *rand.Rand
			round := func(i int) {
				if i%step == 0 {
					rng = rand.New(rand.NewPCG(7, 7))
				}
				size := bases[rng.IntN(len(bases))] * (1 + rng.Int64N(4))
				slot := rng.IntN(least + i%step*(most-least)/step)
				if err := a.Free(ptrs[slot]); err != nil {
					b.Fatal(err)
				}
				var err error
				if ptrs[slot], err = a.Malloc(size, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
			i := 0
			for ; i < 10*step; i++ {
				round(i)
			}
			b.ReportAllocs()
			for b.Loop() {
				round(i)
				i++
			}
		})
	}
}
