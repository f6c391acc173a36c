package main

import (
	"math"
	"slices"
	"testing"
)

// TestRoundsOfAll compares runs of the same rounds alone: the least of more runs is less.
func TestRoundsOfAll(t *testing.T) {
	gm := &programRuns{rounds: map[string]programRun{"0": {steps: []float64{2, 3}}, "1": {steps: []float64{1, 1}}}}
	torch := &programRuns{rounds: map[string]programRun{"0": {steps: []float64{2, 3}}, "2": {steps: []float64{1, 1}}}}
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

// TestWorst takes the memory of each round by itself: rounds differ in their steps, and so in their peaks.
func TestWorst(t *testing.T) {
	gm := &programRuns{rounds: map[string]programRun{"0": {allocated: 99, reserved: 100}, "1": {allocated: 45, reserved: 50}}}
	expandable := &programRuns{rounds: map[string]programRun{"0": {reserved: 101}, "1": {reserved: 60}}}
	if round, held := gm.worst(expandable, []string{"0", "1"}); round != "1" || !held {
		t.Errorf("worst in round %s, held: %v", round, held)
	}
	expandable.rounds["1"] = programRun{reserved: 49}
	if _, held := gm.worst(expandable, []string{"0", "1"}); held {
		t.Error("a round above expandable_segments is not seen")
	}
}
