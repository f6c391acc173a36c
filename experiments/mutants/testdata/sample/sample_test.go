package sample

import "testing"

func TestChoose(t *testing.T) {
	// Not tested: two equal elements.
	if i := Choose([]int{3, 5, 1, 4}, 2); i != 0 {
		t.Errorf("index %d", i)
	}
	if i := Choose([]int{3, 2, 1, 4}, 2); i != 1 {
		t.Errorf("index %d", i)
	}
	if i := Choose([]int{1}, 2); i != -1 {
		t.Errorf("index %d", i)
	}
}

func TestSpan(t *testing.T) {
	if least, greatest, order := Span(1, 2); least != 1 || greatest != 2 || order != -1 {
		t.Error(least, greatest, order)
	}
}
