package exporter

import (
	"encoding/json"
	"fmt"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// timelineFile is what a viewer reads.
type timelineFile struct {
	Events []struct {
		Phase   string  `json:"ph"`
		Process int32   `json:"pid"`
		ID      int64   `json:"id"`
		Time    float64 `json:"ts"`
		Name    string  `json:"name"`
		Args    struct {
			Bytes     int64  `json:"bytes"`
			Requested int64  `json:"requested"`
			Stack     string `json:"stack"`
			Tag       string `json:"tag"`
			Certainty string `json:"certainty"`
			Rule      string `json:"rule"`
		} `json:"args"`
	} `json:"traceEvents"`
}

// TestPerfetto compares the counters with the live bytes of a trace: they are written at most once per microsecond, only when they
// change, and include the peaks. Every bar that begins ends, and has the label of its allocation.
func TestPerfetto(t *testing.T) {
	for name, load := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := load(t)
			labels := map[int64]tags.Label{}
			rows, _ := x.table(t)
			for _, row := range rows {
				labels[row.ID] = row.label
			}
			out, _ := x.written(t, Perfetto)
			var f timelineFile
			if err := json.Unmarshal(out, &f); err != nil {
				t.Fatal(err)
			}
			most, last, bars, failed := map[string]int64{}, map[string][2]int64{}, map[string]bool{}, 0
			for _, e := range f.Events {
				key := fmt.Sprint(e.Process-1, " ", e.Name)
				switch e.Phase {
				case "C":
					if before, ok := last[key]; ok && (int64(e.Time) <= before[0] || e.Args.Bytes == before[1]) {
						t.Fatalf("%s is %d at %f, after %v", key, e.Args.Bytes, e.Time, before)
					}
					last[key] = [2]int64{int64(e.Time), e.Args.Bytes}
					most[key] = max(most[key], e.Args.Bytes)
				case "b", "e":
					bar := fmt.Sprint(e.Process, " ", e.ID)
					if bars[bar] != (e.Phase == "e") {
						t.Fatalf("bar %s: %s", bar, e.Phase)
					}
					bars[bar] = e.Phase == "b"
					label := tags.Label{Tag: e.Args.Tag, Rule: e.Args.Rule, Certainty: tags.Certainty(e.Args.Certainty)}
					if e.Phase == "b" && label != labels[e.ID] {
						t.Fatalf("bar %s is of %v, want %v", bar, label, labels[e.ID])
					}
				case "i":
					if e.Name == "OOM" {
						failed++
					}
				}
			}
			for bar, open := range bars {
				if open {
					t.Errorf("bar %s does not end", bar)
				}
			}
			checkPeaks(t, x, most, failed)
		})
	}
}

func checkPeaks(t *testing.T, x file, most map[string]int64, failed int) {
	t.Helper()
	r, err := x.open()
	if err != nil {
		t.Fatal(err)
	}
	o, err := overview.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range o.Devices {
		for name, want := range map[string]int64{"allocated": d.PeakLive, "reserved": d.PeakReserved} {
			if got := most[fmt.Sprint(d.Ordinal, " ", name)]; got != want {
				t.Errorf("device %d: %s is %d at most, want %d", d.Ordinal, name, got, want)
			}
		}
		if d.Driver != nil && most[fmt.Sprint(d.Ordinal, " from the driver")] != d.Driver.Peak {
			t.Errorf("device %d: from the driver %d at most, want %d", d.Ordinal, most[fmt.Sprint(d.Ordinal, " from the driver")], d.Driver.Peak)
		}
		failed -= len(d.OOMs)
		if d.Driver != nil {
			failed -= len(d.Driver.Refusals)
		}
	}
	if failed != 0 {
		t.Errorf("%d failed requests more than there are", failed)
	}
}

// TestCounter checks that the greatest of several values in a microsecond is written.
func TestCounter(t *testing.T) {
	alloc := func(ns, id, size int64) trace.Event {
		return trace.Event{TimeNS: ns, Op: trace.OpAlloc, ID: id, Size: size}
	}
	free := func(ns, id int64) trace.Event { return trace.Event{TimeNS: ns, Op: trace.OpFree, ID: id} }
	x := made(t, trace.Meta{}, nil, []trace.Event{
		alloc(5000, 1, 10), alloc(5100, 2, 20), free(5200, 2), // 30, then 10 at 1
		alloc(7000, 3, 5), free(7000, 3), // 15 at 2, then 10 at 3
		free(8999, 1), // 10 at 3 already, 0 at 4
	})
	out, _ := x.written(t, Perfetto)
	var f timelineFile
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range f.Events {
		if e.Phase == "C" {
			got += fmt.Sprintf("%v:%d ", e.Time, e.Args.Bytes)
		}
	}
	if want := "0:30 1:10 2:15 3:10 4:0 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestManyBars checks that only large blocks are drawn if there are many.
func TestManyBars(t *testing.T) {
	var rows []trace.Event
	for i := range int64(mostBars + 10) {
		rows = append(rows, trace.Event{TimeNS: i, Op: trace.OpAlloc, ID: i + 1, Size: leastBar << (i % 2)})
	}
	x := made(t, trace.Meta{}, nil, rows)
	out, _ := x.written(t, Perfetto)
	var f timelineFile
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatal(err)
	}
	bars := 0
	for _, e := range f.Events {
		if e.Phase == "b" {
			bars++
			if e.Args.Bytes != 2*leastBar {
				t.Fatalf("a bar of %d bytes", e.Args.Bytes)
			}
		}
	}
	if bars != mostBars/2+5 {
		t.Errorf("%d bars", bars)
	}
}
