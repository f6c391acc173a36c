package replay

import (
	"path/filepath"
	"testing"

	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// TestUntilThePeak: a replay up to the peak that was found holds the bytes that were reserved there, and the tensors that live.
func TestUntilThePeak(t *testing.T) {
	for _, file := range recordings(t, testdata, filepath.Join(testdata, "snapshots")) {
		programs, err := Load(openRecording(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range programs {
			fresh := func() (*blocks.Torch, *sim.Device) {
				dev := sim.New(0, sim.H200())
				a, err := blocks.NewTorch(dev, allocconf.Default())
				if err != nil {
					t.Fatal(err)
				}
				return a, dev
			}
			a, dev := fresh()
			peak, err := FindPeak(t.Context(), p, a, dev)
			if err != nil {
				t.Fatal(err)
			}
			if peak.OOM != nil || peak.Reserved != a.Stats().PeakReserved {
				t.Errorf("%s: %+v, peak reserved %d", file, peak, a.Stats().PeakReserved)
			}
			a, dev = fresh()
			live, err := Until(t.Context(), p, a, dev, peak.Step)
			if err != nil {
				t.Fatal(err)
			}
			if a.Stats().Reserved != peak.Reserved {
				t.Errorf("%s: %d bytes reserved up to the peak, want %d", file, a.Stats().Reserved, peak.Reserved)
			}
			if want := livingAt(p, peak.Step); len(live) != want {
				t.Errorf("%s: %d tensors live, want %d", file, len(live), want)
			}
		}
	}
}

// livingAt counts the tensors that a program holds after a step, except those of 0 bytes.
func livingAt(p *Program, step int) int {
	n := 0
	for i := range step + 1 {
		switch kind := p.Kinds[i]; {
		case kind == Empty || p.Sizes[p.Tensors[i]] == 0:
		case kind == Alloc:
			n++
		case kind == Free || kind == Request:
			n--
		}
	}
	return n
}
