package main

import (
	"fmt"
	"slices"
	"strings"

	"gm/internal/plan/layout"
	"gm/internal/units"
)

// capacity is the size that an arena has to fit in.
type capacity struct {
	arena string    // empty for all arenas without a capacity of their own
	size  units.Few // instances count in units of their own
}

// UnmarshalText implements encoding.TextUnmarshaler, for command lines.
func (c *capacity) UnmarshalText(text []byte) error {
	size := string(text)
	if i := strings.LastIndexByte(size, '='); i >= 0 {
		if c.arena, size = size[:i], size[i+1:]; c.arena == "" {
			return fmt.Errorf("%q names no arena: expected ARENA=SIZE or SIZE", text)
		}
	}
	return c.size.UnmarshalText([]byte(size))
}

// capacityOf returns the capacity of an arena in bytes, or 0 if it has none. If several are given, the last one counts.
func (s *search) capacityOf(arena string) int64 {
	size := units.Few(0)
	named := false
	for _, c := range s.Capacity {
		if c.arena == arena && arena != "" || c.arena == "" && !named {
			size, named = c.size, c.arena != ""
		}
	}
	return int64(size)
}

// checkArenas returns an error when a capacity names an arena that does not exist.
func (s *search) checkArenas(tasks []layout.Task) error {
	for _, c := range s.Capacity {
		if c.arena != "" && !slices.ContainsFunc(tasks, func(t layout.Task) bool { return t.Arena == c.arena }) {
			return fmt.Errorf("--capacity: there is no arena %q, expected one of %s", c.arena, arenaNames(tasks))
		}
	}
	return nil
}
