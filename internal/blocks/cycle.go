package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// Cycle is a plan for an iteration that is repeated without end: its requests, in order, and where each goes. Each arena belongs to one
// stream, so that memory never passes from one stream to another.
type Cycle struct {
	Steps  []Step
	Arenas []int64 // sizes, in bytes
	Proven bool    // the job that will follow it has already made exactly these requests several times
}

// Step is one request of a cycle.
type Step struct {
	Size   int64 // bytes as requested
	Stream cuda.Stream
	Arena  int32 // NoArena if the request is not planned, as when its memory outlives the iteration
	Offset int64 // bytes from the start of the arena
	Lasts  int32 // the memory is free again before the request this many steps later, at most a whole cycle
}

// NoArena stands for the arena of a step that is not planned.
const NoArena = none

func (s *Step) end() int64 { return s.Offset + roundUp(s.Size, minBlockSize) }

// Check returns an error if a cycle is not valid. An allocator that follows a valid cycle need not check whether a place is free.
func (c *Cycle) Check() error {
	if len(c.Steps) == 0 {
		return errors.New("cycle without requests")
	}
	for i, size := range c.Arenas {
		if size < 0 || size > MaxSize {
			return fmt.Errorf("arena %d has %d bytes", i, size)
		}
	}
	streams := map[int32]cuda.Stream{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Arena == NoArena {
			continue
		}
		switch stream, known := streams[s.Arena]; {
		case s.Arena < 0 || int(s.Arena) >= len(c.Arenas):
			return fmt.Errorf("step %d: there is no arena %d", i, s.Arena)
		case s.Size <= 0 || s.Size > MaxSize || s.Offset < 0 || s.Offset > MaxSize || s.Offset%minBlockSize != 0 || s.end() > c.Arenas[s.Arena]:
			return fmt.Errorf("step %d: %d bytes at %d of an arena of %d", i, s.Size, s.Offset, c.Arenas[s.Arena])
		case s.Lasts < 1 || int(s.Lasts) > len(c.Steps):
			return fmt.Errorf("step %d: lasts %d steps of %d", i, s.Lasts, len(c.Steps))
		case known && stream != s.Stream:
			return fmt.Errorf("step %d: arena %d belongs to stream %d, not %d", i, s.Arena, stream, s.Stream)
		}
		streams[s.Arena] = s.Stream
	}
	return c.checkApart()
}

// checkApart walks through the cycle twice and looks for steps whose memory is still in use.
func (c *Cycle) checkApart() error {
	taken := make([]freeSet, len(c.Arenas)) // by (offset, step)
	due := c.due()
	live := make([]bool, len(c.Steps))
	for turn := range 2 * len(c.Steps) {
		i := turn % len(c.Steps)
		for _, d := range due[i] {
			if live[d] {
				taken[c.Steps[d].Arena].remove(c.Steps[d].Offset, cuda.Ptr(d))
				live[d] = false
			}
		}
		s := &c.Steps[i]
		if s.Arena == NoArena {
			continue
		}
		set := &taken[s.Arena]
		at := set.seek(s.Offset, 0)
		if set.valid(at) && set.at(at).size < s.end() {
			return fmt.Errorf("step %d overlaps step %d, which is still in use", i, set.at(at).ptr)
		}
		if at = set.before(at); set.valid(at) && c.Steps[set.at(at).ptr].end() > s.Offset {
			return fmt.Errorf("step %d overlaps step %d, which is still in use", i, set.at(at).ptr)
		}
		set.insert(free{size: s.Offset, ptr: cuda.Ptr(i)})
		live[i] = true
	}
	return nil
}

// due returns, for each step, the steps whose memory is free again before it.
func (c *Cycle) due() [][]int32 {
	due := make([][]int32, len(c.Steps))
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Arena != NoArena {
			at := (i + int(s.Lasts)) % len(c.Steps)
			due[at] = append(due[at], int32(i))
		}
	}
	return due
}
