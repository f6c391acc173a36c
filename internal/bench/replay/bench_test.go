package replay

import (
	"path/filepath"
	"testing"

	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// BenchmarkReplay replays the bundled traces through each allocator.
func BenchmarkReplay(b *testing.B) {
	expandable := allocconf.Default()
	expandable.Expandable = true
	for _, c := range []struct {
		name string
		make func(*sim.Device) (blocks.Allocator, error)
	}{
		{"torch", func(dev *sim.Device) (blocks.Allocator, error) {
			return blocks.NewTorch(dev, allocconf.Default())
		}},
		{"expandable", func(dev *sim.Device) (blocks.Allocator, error) { return blocks.NewTorch(dev, expandable) }},
		{"gmlake", func(dev *sim.Device) (blocks.Allocator, error) {
			return blocks.NewGMLake(dev, blocks.DefaultGMLakeConf())
		}},
		{"gmlake-code", func(dev *sim.Device) (blocks.Allocator, error) {
			return blocks.NewGMLakeCode(dev, blocks.DefaultGMLakeCodeConf())
		}},
		{"native", func(dev *sim.Device) (blocks.Allocator, error) { return blocks.NewNative(dev), nil }},
	} {
		for _, file := range recordings(b, testdata) {
			b.Run(c.name+"/"+filepath.Base(file), func(b *testing.B) {
				programs, err := Load(openRecording(b, file))
				if err != nil {
					b.Fatal(err)
				}
				p := programs[0]
				b.ReportAllocs()
				for b.Loop() {
					dev := sim.New(0, sim.H200())
					a, err := c.make(dev)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := Run(p, a, dev); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(p.Steps())*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			})
		}
	}
}
