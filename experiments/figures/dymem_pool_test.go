package main

import (
	"fmt"
	"testing"

	"gm/internal/swap/network"
)

func TestArena(t *testing.T) {
	var a arena
	for _, bytes := range []int64{30, 10, 20, 10, 10} {
		a.take(bytes)
	}
	a.give(0)
	a.give(40)
	var got []int64
	for _, bytes := range []int64{20, 40, 25, 5} { // the gap of its size, behind all, the first gap, what is left of that
		got = append(got, a.take(bytes))
	}
	if want := "[40 80 0 25]"; fmt.Sprint(got) != want || a.top() != 120 {
		t.Errorf("got %v up to %d, want %s", got, a.top(), want)
	}
}

// TestStays checks that a pool is no smaller than what is in use at once, under a schedule that moves something.
func TestStays(t *testing.T) {
	m, err := network.Build("resnet-32,batch=4")
	if err != nil {
		t.Fatal(err)
	}
	run, err := dymemStep(m, "vdnn-all", dymemDevice)
	if err != nil {
		t.Fatal(err)
	}
	use := make([]int64, len(m.Graph.Ops)+1)
	for _, s := range stays(m, run.actions) {
		for op := s.from; op < s.end; op++ {
			use[op] += s.bytes
		}
	}
	most := int64(0)
	for _, bytes := range use {
		most = max(most, m.Always+bytes)
	}
	if most != run.result.Peak || bestFit(run) < most || grouped(run) < most {
		t.Errorf("a peak of %d, pools of %d and %d; simulated %d", most, bestFit(run), grouped(run), run.result.Peak)
	}
	if run.result.Offloads == 0 {
		t.Error("nothing was moved")
	}
}
