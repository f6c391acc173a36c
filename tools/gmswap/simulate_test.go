package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/internal/cli"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/store"
)

// shared is a link of two GPUs that take three times as long when both copy.
func shared() *link.Link {
	rate := func(n int64) []link.Rate {
		return []link.Rate{{Bytes: 1 << 20, Out: n, In: n, BothOut: n, BothIn: n}}
	}
	gpu := func(i int) link.GPU {
		return link.GPU{Ordinal: i, NUMANode: -1, MemorySlowdown: 1, Alone: rate(3e9), Together: rate(1e9)}
	}
	return &link.Link{Schema: link.Schema, GPUs: []link.GPU{gpu(0), gpu(1)}}
}

// writePair writes a graph, and a schedule of it that was made for some GPUs. Change may change it before.
func writePair(t *testing.T, gpus int, change func(*store.Schedule)) (graph, schedule string) {
	t.Helper()
	dir := t.TempDir()
	graph, schedule = filepath.Join(dir, "g.parquet"), filepath.Join(dir, "s.parquet")
	g := &store.Graph{Graph: chain()}
	all, err := policy.Lookup("all")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduling.Make(g.Graph, all, scheduling.Limits{Device: 1 << 40, Host: 1 << 40, Link: shared(), GPUs: gpus})
	if err != nil {
		t.Fatal(err)
	}
	change(made.Schedule)
	write := func(path string, content func(io.Writer) error) {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := content(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(graph, func(w io.Writer) error { return store.WriteGraph(w, g) })
	write(schedule, func(w io.Writer) error { return store.WriteSchedule(w, made.Schedule, g) })
	return graph, schedule
}

// TestSimGPUs simulates a schedule for several GPUs again: its result is that of its file.
func TestSimGPUs(t *testing.T) {
	for gpus, with := range map[int]string{0: "", 1: "", 2: ", with 2 GPUs that copy at the same time"} {
		said := int64(0)
		graph, schedule := writePair(t, gpus, func(s *store.Schedule) { said = s.Meta.StepNS })
		s, err := (&simulateCmd{Graph: graph, Schedule: schedule}).read()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		if int64(s.result.Step) != said {
			t.Errorf("for %d GPUs: simulated are %v, the file says %d ns", gpus, s.result.Step, said)
		}
		var text bytes.Buffer
		if err := s.print(&text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), with+"\n") && strings.Contains(text.String(), "GPUs") == (with != ""); !got {
			t.Errorf("for %d GPUs it prints %s", gpus, &text)
		}
	}
}

// TestCheckSays has what the proof is about in its line: the GPUs, and that nothing is known of places on the host.
func TestCheckSays(t *testing.T) {
	for want, change := range map[string]func(*store.Schedule){
		"ok: 3 actions, made for 2 GPUs that copy at the same time; in use are at most 7 GiB of the device (within 1 TiB), and 3 GiB of the host (within 1 TiB)": func(*store.Schedule) {},
		"ok: 3 actions, made for 2 GPUs that copy at the same time; in use are at most 7 GiB of the device (within 1 TiB), and 3 GiB of the host (within 1 TiB)" +
			"; where on the host is not said": func(s *store.Schedule) { s.Slots = nil },
	} {
		graph, schedule := writePair(t, 2, change)
		var out bytes.Buffer
		if err := (&checkCmd{Graph: graph, Schedule: schedule}).Run(&cli.Context{Out: &out}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != fmt.Sprintln(want) {
			t.Errorf("got  %swant %s", got, want)
		}
	}
}
