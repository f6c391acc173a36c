package gmtrace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/torch/snapshot"
)

// event is one entry of a device's history.
type event struct {
	Action string
	Addr   uint64
	Size   int64
	Stack  string
}

// dumps returns the number of snapshots that a process wrote.
func (s *session) dumps(pid int) int {
	return len(s.files(fmt.Sprintf("history.%d.*.pickle", pid)))
}

// recorded joins the snapshots of a process, and returns the entries of each device.
func (s *session) recorded(pid int) map[int32][]event {
	s.t.Helper()
	texts := column.NewStrings()
	j := snapshot.NewJoin(texts)
	out := map[int32][]event{}
	j.Fresh = func(e trace.Event) {
		out[e.Device] = append(out[e.Device], event{e.Op.String(), e.Addr, e.Size, texts.Text(e.Stack)})
	}
	for n := range s.dumps(pid) {
		name := fmt.Sprintf("history.%d.%d.pickle", pid, n)
		f, err := os.Open(filepath.Join(s.dir, name))
		if err != nil {
			s.t.Fatal(err)
		}
		if err := j.Add(f, name); err != nil {
			s.t.Fatal(err)
		}
		f.Close()
	}
	rows := 0
	warn := func(text string) {
		if !strings.Contains(text, "after the history was emptied") { // by the program, between two snapshots
			s.t.Errorf("warning of process %d: %s", pid, text)
		}
	}
	if err := j.Write(count(&rows), warn); err != nil {
		s.t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// sink counts rows.
type sink struct{ rows *int }

func count(rows *int) sink { return sink{rows} }

func (s sink) Write(b *trace.Batch) error {
	*s.rows += b.Len()
	return nil
}

// logged returns what the stub's allocators noted, as it happened.
func (s *session) logged(pid int) map[int32][]event {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.logs, fmt.Sprintf("log.%d", pid)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	out := map[int32][]event{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Action     string
			Addr       uint64
			DeviceFree uint64 `json:"device_free"`
			Size       int64
			Device     int32
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			s.t.Fatal(err)
		}
		out[e.Device] = append(out[e.Device], event{Action: e.Action, Addr: max(e.Addr, e.DeviceFree), Size: e.Size})
	}
	return out
}

// compare checks that a process' snapshots hold all that its allocators noted, but the frees of what was live when
// the last of them was taken, and at most the given number of entries more for each device.
func (s *session) compare(pid, missing int) {
	s.t.Helper()
	got, want := s.recorded(pid), s.logged(pid)
	if len(got) != len(want) {
		s.t.Fatalf("%d devices, want %d", len(got), len(want))
	}
	for device := range want {
		compareDevice(s.t, withoutSnapshots(got[device]), withoutSnapshots(want[device]), missing)
	}
}

// withoutSnapshots leaves out entries of which one may be taken for another when the ring is emptied between them.
func withoutSnapshots(events []event) []event {
	return slices.DeleteFunc(events, func(e event) bool { return e.Action == "snapshot" })
}

func compareDevice(t *testing.T, got, want []event, missing int) {
	t.Helper()
	for i, e := range got {
		e.Stack = ""
		if i >= len(want) || e != want[i] {
			t.Fatalf("entry %d of %d is %+v, want %+v", i, len(got), e, want[min(i, len(want)-1)])
		}
	}
	rest := want[len(got):]
	rest = slices.DeleteFunc(slices.Clone(rest), func(e event) bool {
		return e.Action == "free_requested" || e.Action == "free_completed"
	})
	if len(rest) > missing {
		t.Errorf("%d entries are missing of %d, from %+v", len(rest), len(want), rest[0])
	}
}
