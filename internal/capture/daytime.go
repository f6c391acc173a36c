package capture

import (
	"fmt"
	"time"

	"gm/internal/capture/ring"
)

// daytime watches the time of day against the monotonic clock. Traces go by that one, but for what others have timed.
type daytime struct {
	offset int64 // of the time of day, in nanoseconds
	known  bool
}

// leastJump is how far the time of day must be set for it to be told: less is what steering does, and what passes between two clocks' readings.
const leastJump = 100 * time.Millisecond

// look returns how far the time of day was set since the last look, 0 if it was not. Both times are in nanoseconds.
func (d *daytime) look(day, monotonic int64) time.Duration {
	before, known := d.offset, d.known
	d.offset, d.known = day-monotonic, true
	if jump := time.Duration(d.offset - before); known && jump.Abs() >= leastJump {
		return jump
	}
	return 0
}

// watchClock tells, also in the traces, when the time of day was set.
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

// maxNotes bounds what is told in a trace of the clock.
const maxNotes = 1000
