package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"gm/internal/dsa"
	"gm/internal/units"
)

// watch shows the progress of a search on a terminal.
type watch struct {
	arena string
	start time.Time
	mu    sync.Mutex
	last  dsa.Progress
}

func newWatch(arena string) *watch { return &watch{arena: arena, start: time.Now()} }

// progress records the state of the search.
func (w *watch) progress(p dsa.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = p
}

// text returns the line for the terminal.
func (w *watch) text() string {
	w.mu.Lock()
	p := w.last
	w.mu.Unlock()
	parts := []string{arenaName(w.arena)}
	if p.Peak > 0 {
		parts = append(parts, "peak "+units.Bytes(p.Peak).String(), "bound "+units.Bytes(p.Bound).String(), "gap "+gapText(p.Peak, p.Bound))
	}
	parts = append(parts, fmt.Sprintf("%.1fs", time.Since(w.start).Seconds()))
	if p.Method != "" {
		parts = append(parts, p.Method)
	}
	return strings.Join(parts, "  ")
}
