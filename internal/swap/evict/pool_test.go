package evict

import (
	"slices"
	"testing"
)

// TestPool places tensors at both ends of free blocks, and joins what they leave.
func TestPool(t *testing.T) {
	p := NewPool(100)
	p.Put(0, 7, 30, false)
	p.Put(1, 8, 20, true)
	p.Put(1, 9, 50, false) // all of the block
	want := []Block{{0, 30, 7}, {30, 50, 9}, {80, 20, 8}}
	if !slices.Equal(p.Blocks, want) || p.Largest() != 0 {
		t.Fatalf("got %v, want %v", p.Blocks, want)
	}
	for _, step := range []struct {
		take    int32
		want    []Block
		largest int64
	}{
		{7, []Block{{0, 30, None}, {30, 50, 9}, {80, 20, 8}}, 30},
		{8, []Block{{0, 30, None}, {30, 50, 9}, {80, 20, None}}, 30},
		{9, []Block{{0, 100, None}}, 100},
	} {
		if p.Take(step.take); !slices.Equal(p.Blocks, step.want) || p.Largest() != step.largest {
			t.Errorf("without %d: %v, the largest of %d bytes, want %v", step.take, p.Blocks, p.Largest(), step.want)
		}
	}
}

// TestPoolOfNothing has no blocks: there is none of no bytes.
func TestPoolOfNothing(t *testing.T) {
	if p := NewPool(0); len(p.Blocks) > 0 {
		t.Error(p.Blocks)
	}
}
