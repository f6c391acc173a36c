package layouts

import (
	"reflect"
	"testing"

	"gm/internal/dsa"
)

// greatestLoad returns the most bytes that live at the same time.
func greatestLoad(p *dsa.Problem) int64 {
	change := make([]int64, p.End[0]+1)
	for i := range p.Size {
		if need := p.End[i] + 1; need > int64(len(change)) {
			change = append(change, make([]int64, need-int64(len(change)))...)
		}
		change[p.Start[i]] += p.Size[i]
		change[p.End[i]] -= p.Size[i]
	}
	live, most := int64(0), int64(0)
	for _, bytes := range change {
		live += bytes
		most = max(most, live)
	}
	return most
}

// TestSkeletal compares with MEMO's sum: 16 numbers of two bytes per token, layer and hidden size.
func TestSkeletal(t *testing.T) {
	for _, m := range Models(1 << 16) {
		m.Shards = 1
		all := m.Problem()
		m.Offload = true
		saved := greatestLoad(all) - greatestLoad(m.Problem())
		skeletal := half * 16 * m.Tokens * m.Hidden * m.Layers
		if ratio := float64(saved) / float64(skeletal); ratio < 0.97 || ratio > 1.03 {
			t.Errorf("%s: offloading saves %d bytes, skeletal activations are %d", m.Name, saved, skeletal)
		}
	}
}

func TestEverythingIsFreed(t *testing.T) {
	for _, m := range Models(4096) {
		for _, offload := range []bool{false, true} {
			for _, keep := range []bool{false, true} {
				m.Offload, m.KeepGradients, m.Microbatches = offload, keep, 3
				tape := newTape()
				m.iteration(tape)
				if tape.live != 0 {
					t.Errorf("%+v: %d buffers are left", m, tape.live)
				}
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, n := range []int{1, 1000, 10_000, 100_000} {
		if got := Training(n, 1).Len(); got > 1000 && (got < n*9/10 || got > n*11/10) {
			t.Errorf("%d buffers of training, expected about %d", got, n)
		}
		if got := Random(n, 1).Len(); got != n {
			t.Errorf("%d random buffers, expected %d", got, n)
		}
	}
}

func TestSeeds(t *testing.T) {
	for _, make := range []func(int, uint64) *dsa.Problem{Training, Random} {
		if p := make(5000, 1); p.Validate() != nil || !reflect.DeepEqual(p, make(5000, 1)) || reflect.DeepEqual(p, make(5000, 2)) {
			t.Error("the seed does not tell problems apart, or not only it")
		}
	}
}
