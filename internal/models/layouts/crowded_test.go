package layouts

import (
	"reflect"
	"testing"
)

func TestCrowded(t *testing.T) {
	for seed := range uint64(100) {
		p := Crowded(12, seed)
		if err := p.Validate(); err != nil || p.Len() == 0 || p.Len() > 12 {
			t.Errorf("seed %d: %d buffers, %v", seed, p.Len(), err)
		}
		if !reflect.DeepEqual(p, Crowded(12, seed)) || reflect.DeepEqual(p, Crowded(12, seed+1)) {
			t.Errorf("seed %d: it does not tell problems apart, or not only it", seed)
		}
	}
}

// TestPacked checks that the buffers fill the rectangle: their load is never above its height, and their areas add up to its area.
func TestPacked(t *testing.T) {
	for seed := range uint64(20) {
		p := Packed(50, 1000, 120, seed)
		area := int64(0)
		for i, size := range p.Size {
			area += size * (p.End[i] - p.Start[i])
		}
		if load := greatestLoad(p); load != 1000 || area != 50*1000 || p.Len() < 60 {
			t.Errorf("seed %d: %d buffers, a load of %d, an area of %d", seed, p.Len(), load, area)
		}
		if !reflect.DeepEqual(p, Packed(50, 1000, 120, seed)) {
			t.Errorf("seed %d: another problem the second time", seed)
		}
	}
}
