package main

import (
	"bytes"
	"testing"
	"time"

	"gm/internal/bench/live"
	"gm/internal/bench/replay"
	"gm/internal/cli"
)

func TestWrong(t *testing.T) {
	var out bytes.Buffer
	c := &cli.Context{Tool: "gmstitch", Err: &out}
	p := &replay.Program{Name: "job"}
	kept := liveRun{program: p, alloc: "torch", Result: &live.Result{Checked: live.Checked{Tensors: 7}}}
	lost := liveRun{program: p, alloc: "stitch", Result: &live.Result{Checked: live.Checked{
		Tensors: 7, Wrong: 2,
		Mismatches: []live.Mismatch{{Tensor: 3, Row: 9, Size: 512, Addr: 0x7000, Offset: 4, Expected: 1, Found: 2, Writer: -1}},
	}}}
	if err := wrong(c, []liveRun{kept}); err != nil || out.Len() > 0 {
		t.Errorf("nothing wrong: %v, %q", err, out.String())
	}
	err := wrong(c, []liveRun{kept, lost})
	if want := "job: allocator stitch: 2 of 7 tensors do not hold what was written"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	want := "gmstitch: job: allocator stitch: tensor 3 of row 9, 512 bytes at 0x7000: 0x00000001 written, 0x00000002 found at byte 4\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 166: "166ns", 1355: "1.36µs", 79888: "79.9µs", 12761791: "12.8ms", 1500 * time.Millisecond: "1.5s", 2 * time.Hour: "2h0m0s",
	} {
		if got := brief(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}
