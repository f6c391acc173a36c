package main

import (
	"math"
	"slices"
	"testing"
)

// TestRoundsOfAll compares runs of the same rounds alone: the least of more runs is less.
func TestRoundsOfAll(t *testing.T) {
	gm := &programRuns{steps: map[string][]float64{"0": {2, 3}, "1": {1, 1}}}
	torch := &programRuns{steps: map[string][]float64{"0": {2, 3}, "2": {1, 1}}}
	rounds := roundsOfAll(gm, torch)
	if !slices.Equal(rounds, []string{"0"}) {
		t.Fatalf("rounds %v", rounds)
	}
	if got := sum(gm.best(rounds)); got != 5 {
		t.Errorf("%v seconds in all", got)
	}
	if got := gm.against(torch); got != 1 {
		t.Errorf("median ratio %v", got)
	}
	if got := gm.against(&programRuns{}); !math.IsNaN(got) {
		t.Errorf("median ratio %v to no runs", got)
	}
}
