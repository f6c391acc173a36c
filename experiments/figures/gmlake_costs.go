package main

import (
	"fmt"

	"gm/internal/cuda/sim"
)

// lakeParts are the rows of the paper's table 1: 2 GB made of chunks of 2, 128 and 1024 MB, by cuMemAlloc's time for 2 GB.
var lakeParts = []struct {
	call      sim.Call
	published [3]float64
}{
	{sim.AddressReserve, [3]float64{0.003, 0.003, 0.002}},
	{sim.Create, [3]float64{18.1, 0.89, 0.79}},
	{sim.Map, [3]float64{0.70, 0.01, 0.002}},
	{sim.SetAccess, [3]float64{96.8, 8.2, 0.7}},
}

// lakeChunks are its columns, in MiB.
var lakeChunks = [3]int64{2, 128, 1024}

// lakeCost is the time of one of those calls for a block of chunks, by cuMemAlloc's for the block; sizes in bytes.
func lakeCost(costs *sim.CostTable, call sim.Call, block, chunk int64) float64 {
	native := float64(costs[sim.MemAlloc].At(block))
	if call == sim.AddressReserve {
		return float64(costs[call].At(block)) / native
	}
	return float64(costs[call].At(chunk)) * float64(block/chunk) / native
}

// lakeTable1 computes table 1 from the calls that were measured on an H200. The paper's are of an A100 and CUDA 11.4, so single cells have
// no target; the sums are to be within a factor of two.
func (e *experiment) lakeTable1() {
	costs := sim.H200()
	var total, published [3]float64
	for _, part := range lakeParts {
		cells := ""
		for i, chunk := range lakeChunks {
			cost := lakeCost(&costs, part.call, 2<<30, chunk<<20)
			total[i] += cost
			published[i] += part.published[i]
			cells += fmt.Sprintf("%.3g (%.3g) ", cost, part.published[i])
		}
		e.table.Add("gmlake table 1, "+part.call.String()+": 2, 128, 1024 MB (the paper's)", cells, "", "beside")
	}
	for i, chunk := range lakeChunks {
		e.add(fmt.Sprintf("gmlake table 1, total of %d MB", chunk), fmt.Sprintf("%.3g", total[i]),
			fmt.Sprintf("%.3g, within a factor of 2", published[i]),
			total[i] > published[i]/2 && total[i] < published[i]*2)
	}
}

// lakeFigure6 computes what figure 6 says of chunks of 2 MB: over 100 times cuMemAlloc.
func (e *experiment) lakeFigure6() {
	costs := sim.H200()
	for _, block := range []int64{512, 1024, 2048} {
		curve := ""
		first := 0.0
		for chunk := int64(2); chunk <= min(block, 1024); chunk *= 2 {
			sum := 0.0
			for _, part := range lakeParts {
				sum += lakeCost(&costs, part.call, block<<20, chunk<<20)
			}
			if chunk == 2 {
				first = sum
			}
			curve += fmt.Sprintf("%.3g ", sum)
		}
		e.add(fmt.Sprintf("gmlake figure 6, %d MB of chunks of 2 MB and more, by cuMemAlloc", block), curve, "above 100 at 2 MB", first > 100)
	}
}
