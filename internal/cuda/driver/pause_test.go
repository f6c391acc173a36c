package driver

import (
	"testing"
	"time"

	"gm/internal/cuda"
)

// TestPause has a copy to the host wait while another device of the same GPU maps memory.
func TestPause(t *testing.T) {
	l := load(t)
	d, other := got[*Device](t)(l.Open(0)), got[*Device](t)(l.Open(0))
	t.Cleanup(func() { must(t, d.Close()) })
	const size = 4 * pausePart
	s := got[cuda.Stream](t)(d.StreamCreate())
	m, p := registered(t, d, size, size, 0), got[cuda.Ptr](t)(d.MemAlloc(size))
	if other.pauses.begin() {
		t.Error("copies pause that never were")
	}
	other.pauses.end(false)
	for round := range uint32(3) {
		must(t, d.MemsetD32Async(p, round+5, size/4, s))
		d.pauses.address(d)
		begun := other.pauses.begin()
		if !begun {
			t.Fatal("copies do not pause")
		}
		done, _, err := d.Transfer(cuda.Transfer{Lane: s, Device: p, Host: m})
		must(t, err)
		time.Sleep(longestPause / 5)
		if passed := got[bool](t)(d.EventQuery(done)); passed || m[0] == byte(round+5) {
			t.Fatalf("the copy has passed: %v, and its first byte is %d", passed, m[0])
		}
		other.pauses.end(begun)
		must(t, d.EventSynchronize(done))
		if m[0] != byte(round+5) || m[size-4] != byte(round+5) {
			t.Fatalf("the host has %d and %d", m[0], m[size-4])
		}
		must(t, d.EventDestroy(done))
	}
	must(t, d.MemFree(p))
	must(t, d.StreamDestroy(s))
	must(t, other.Close())
}

// TestPauseExpires has a call wait for a copy that pauses for it: it goes on, and none pauses from then on.
func TestPauseExpires(t *testing.T) {
	d := open(t)
	s := got[cuda.Stream](t)(d.StreamCreate())
	m, p := registered(t, d, 4096, 4096, 0), got[cuda.Ptr](t)(d.MemAlloc(4096))
	d.pauses.address(d)
	begun := d.pauses.begin()
	must(t, d.MemsetD32Async(p, 7, 1024, s))
	_, _, err := d.Transfer(cuda.Transfer{Lane: s, Device: p, Host: m})
	must(t, err)
	begin := time.Now()
	must(t, d.StreamSynchronize(s))
	if took := time.Since(begin); took < longestPause/2 || m[0] != 7 {
		t.Errorf("the copy took %v, and the host has %d", took, m[0])
	}
	if d.pauses.begin() {
		t.Error("copies still pause")
	}
	d.pauses.end(false)
	d.pauses.end(begun)
	must(t, d.MemFree(p))
	must(t, d.StreamDestroy(s))
}

// TestPauseCounts has two calls map memory, one of them for longer.
func TestPauseCounts(t *testing.T) {
	d := open(t)
	d.pauses.address(d)
	a, b := d.pauses.begin(), d.pauses.begin()
	d.pauses.end(a)
	if *d.pauses.word != 1 {
		t.Error("copies go on while one call is left")
	}
	d.pauses.end(b)
	if *d.pauses.word != 0 {
		t.Error("copies still pause")
	}
}
