package replay_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"gm/formats/trace"
	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// A recorded training run is replayed through PyTorch's allocator, once with its default settings and once with expandable segments, on a
// simulated H200.
func Example() {
	programs, err := replay.Open("../../../testdata/opt13b-LRV.parquet")
	if err != nil {
		log.Fatal(err)
	}
	p := programs[0] // there is one for each GPU
	fmt.Printf("%d steps, %.1f GiB in use at the peak\n", p.Steps(), gib(p.PeakLive()))
	for _, expandable := range []bool{false, true} {
		conf := allocconf.Default()
		conf.Expandable = expandable
		dev := sim.New(0, sim.H200())
		torch, err := blocks.NewTorch(dev, conf)
		if err != nil {
			log.Fatal(err)
		}
		result, err := replay.Run(context.Background(), p, torch, dev)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("expandable %t: %.1f GiB reserved, %d driver calls\n", expandable, gib(result.Stats.PeakReserved), result.Calls)
	}
	// Output:
	// 72966 steps, 39.0 GiB in use at the peak
	// expandable false: 62.4 GiB reserved, 414 driver calls
	// expandable true: 41.4 GiB reserved, 6722 driver calls
}

// A device that is too small ends a replay. That is a result, not an error.
func ExampleRun() {
	programs, err := replay.Open("../../../testdata/opt13b-LRV.parquet")
	if err != nil {
		log.Fatal(err)
	}
	dev := sim.New(8<<30, sim.H200())
	result, err := replay.Run(context.Background(), programs[0], blocks.NewNative(dev), dev)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("row %d of the trace: %d bytes requested, %d allocated\n", result.OOM.Row, result.OOM.Size, result.OOM.Allocated)
	// Output: row 289 of the trace: 209715200 bytes requested, 8506675200 allocated
}

// PyTorch's allocator, replayed, takes the segments that PyTorch took, and places each block at the address that was recorded.
func ExampleVerify() {
	r, err := trace.Open("../../../testdata/captures/opt1.3b.parquet")
	if err != nil {
		log.Fatal(err)
	}
	verdicts, err := replay.Verify(r, 0)
	if err := errors.Join(err, r.Close()); err != nil {
		log.Fatal(err)
	}
	for _, v := range verdicts {
		fmt.Printf("GPU %d: %d blocks, divergence: %v\n", v.Device, v.Allocs, v.Divergence)
	}
	// Output: GPU 0: 12902 blocks, divergence: <nil>
}

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }
