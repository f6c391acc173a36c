package capture

import (
	"fmt"
	"time"

	"gm/internal/capture/ring"
)

// daytime compares the time of day with the monotonic clock, which traces follow, to detect that the time of day was set. Frameworks time
// their own events by the time of day.
type daytime struct {
	offset int64 // of the time of day from the monotonic clock, in nanoseconds
	known  bool
}

// leastJump is the least change that is reported. Smaller ones come from clock steering, or from the delay between reading the two clocks.
const leastJump = 100 * time.Millisecond

// look returns by how much the time of day was set since the last call, 0 if it was not. Both times are in nanoseconds.
func (d *daytime) look(day, monotonic int64) time.Duration {
	before, known := d.offset, d.known
	d.offset, d.known = day-monotonic, true
	if jump := time.Duration(d.offset - before); known && jump.Abs() >= leastJump {
		return jump
	}
	return 0
}

// watchClock warns when the time of day was set, and notes it in the traces.
func (s *Session) watchClock() {
	jump := s.daytime.look(time.Now().UnixNano(), int64(ring.Monotonic()))
	if jump == 0 {
		return
	}
	way := "forward"
	if jump < 0 {
		way = "back"
	}
	text := fmt.Sprintf("clock set %s by %v", way, jump.Abs().Round(time.Millisecond))
	s.trouble(fmt.Errorf("%s, or the machine slept: traces go on as if it had not; PyTorch's own times may be off", text))
	for _, p := range s.processes {
		if len(p.notes) < maxNotes && !p.life.dead() {
			p.notes = append(p.notes, mark{p.now(), text})
		}
	}
}

// maxNotes bounds the notes about the clock in a trace.
const maxNotes = 1000
