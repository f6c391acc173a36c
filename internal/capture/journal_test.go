package capture

import (
	"testing"
	"time"

	"gm/internal/capture/ring"
)

// TestDue writes a frame when many slots wait, when something is urgent, or after a while, but none without anything in it.
func TestDue(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		pending, slots int
		urgent         bool
		ago            time.Duration
		want           bool
	}{
		{0, 0, true, 2 * framePeriod, false}, {1, 0, true, 0, true}, {0, 1, true, 0, true}, {1, 0, false, framePeriod - 1, false},
		{1, 0, false, framePeriod, true}, {0, 1, false, framePeriod, true}, {0, frameSlots - 1, false, 0, false}, {0, frameSlots, false, 0, true},
	} {
		j := &journal{pending: make([]byte, c.pending), urgent: c.urgent, written: now.Add(-c.ago)}
		if got := j.due(c.slots, now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestPendingRoom keeps half of the room of messages that cannot be written for those of the program.
func TestPendingRoom(t *testing.T) {
	for _, c := range []struct {
		pending int
		kind    ring.Kind
		want    int
	}{
		{maxFrame / 2, kindSample, messageHead}, {maxFrame/2 + 1, kindSample, 0}, {maxFrame/2 + 1, ring.Alloc, messageHead},
	} {
		j := &journal{pending: make([]byte, c.pending)}
		j.add(&ring.Record{Kind: c.kind})
		if got := len(j.pending) - c.pending; got != c.want {
			t.Errorf("%d bytes behind %d, want %d", got, c.pending, c.want)
		}
	}
}
