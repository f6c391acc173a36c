package replay

import (
	"path/filepath"
	"testing"

	"gm/internal/blocks"
	"gm/internal/cuda/sim"
)

// BenchmarkReplay replays the bundled traces through every allocator.
func BenchmarkReplay(b *testing.B) {
	for _, spec := range blocks.AllSpecs() {
		for _, file := range recordings(b, testdata) {
			b.Run(spec.Text+"/"+filepath.Base(file), func(b *testing.B) {
				programs, err := Load(openRecording(b, file))
				if err != nil {
					b.Fatal(err)
				}
				p := programs[0]
				job := jobOf(b, p, spec)
				b.ReportAllocs()
				for b.Loop() {
					dev := sim.New(0, sim.H200())
					a, err := spec.New(dev, job)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := Run(b.Context(), p, a, dev); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(p.Steps())*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			})
		}
	}
}
