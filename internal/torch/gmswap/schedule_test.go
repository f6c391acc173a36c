package gmswap

import (
	"io"
	"path/filepath"
	"testing"

	"gm/internal/atomicfile"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/store"
)

// TestSchedule records a program, makes a schedule of that elsewhere, and has the program follow it, and another one that cannot.
func TestSchedule(t *testing.T) {
	const device = "GMSWAP_DEVICE=1000000"
	s := newSession(t)
	graph, schedule := filepath.Join(s.dir, "g.parquet"), filepath.Join(s.dir, "s.parquet")
	s.same("plain", "auto", device, "GMSWAP_RECORD="+graph)
	peak := plan(t, graph, schedule)

	f, said := s.same("plain", "auto", device, "GMSWAP_SCHEDULE="+schedule, "GMSWAP_POLICY=none")
	s.says(said, nil)
	if f.Out == 0 || f.Foreseen != peak {
		t.Errorf("the schedule's peak is %d, the hook did %+v", peak, f)
	}
	f, said = s.same("siamese", "auto", device, "GMSWAP_SCHEDULE="+schedule)
	s.says(said, []string{"gmswap: schedule " + schedule + " is for a step of "})
	if f.Followed == 0 {
		t.Errorf("the hook did %+v", f)
	}
}

// plan makes a schedule of a graph in which everything is moved, and returns its peak.
func plan(t *testing.T, graph, schedule string) int {
	t.Helper()
	g, err := store.ReadGraph(graph)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Lookup("all")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduling.Make(g.Graph, p, scheduling.Limits{Device: 1 << 40, Host: 1 << 40, Link: link.Default()})
	if err != nil {
		t.Fatal(err)
	}
	err = atomicfile.Write(schedule, func(w io.Writer) error { return store.WriteSchedule(w, made.Schedule, g) })
	if err != nil {
		t.Fatal(err)
	}
	return int(made.Moved.Peak)
}
