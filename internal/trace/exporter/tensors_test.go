package exporter

import (
	"bytes"
	"testing"

	"gm/formats/tensors"
	"gm/formats/trace"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// tensorRow is a row of a table, with its texts.
type tensorRow struct {
	tensors.Tensor
	level, pool, stack string
	label              tags.Label
}

// table returns the rows of the table of a trace.
func (f file) table(t testing.TB) (rows []tensorRow, meta tensors.Meta) {
	t.Helper()
	out, warnings := f.written(t, Tensors)
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	r, err := tensors.NewReader(bytes.NewReader(out), int64(len(out)), "table")
	if err != nil {
		t.Fatal(err)
	}
	text := r.Strings().Text
	err = tensors.Each(r, func(x *tensors.Tensor) error {
		label := tags.Label{Tag: text(x.Tag), Rule: text(x.Rule), Certainty: tags.Certainty(text(x.Certainty))}
		rows = append(rows, tensorRow{*x, text(x.Level), text(x.Pool), text(x.Stack), label})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, r.Meta()
}

// TestTensors compares a table with what other packages find in the trace: each allocation's fields and label, and the live bytes of each device
// at the peak.
func TestTensors(t *testing.T) {
	for name, load := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := load(t)
			r, err := x.open()
			if err != nil {
				t.Fatal(err)
			}
			o, err := overview.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			if r, err = x.open(); err != nil {
				t.Fatal(err)
			}
			labels, err := tags.Derive(r)
			if err != nil {
				t.Fatal(err)
			}
			table, meta := x.table(t)
			if meta.Rows != o.Rows {
				t.Errorf("a trace of %d rows, want %d", meta.Rows, o.Rows)
			}
			rows := x.rows(t, every)
			for _, got := range table {
				want := rows[got.Alloc]
				if want.Op != trace.OpAlloc || want.ID != got.ID || want.Size != got.Size || want.Stream != got.Stream || want.Device != got.Device ||
					want.TimeNS != got.AllocNS || want.stack != got.stack || want.pool != got.pool || want.Level.String() != got.level {
					t.Fatalf("%+v, want %+v", got, want)
				}
				if l := labels.Of(got.ID); want.Level == trace.LevelFramework && l != got.label || want.Level == trace.LevelDriver && got.label.Tag != want.tag {
					t.Fatalf("allocation %d is of %v, want %v", got.ID, got.label, l)
				}
				if got.Free < o.Rows && (rows[got.Free].ID != got.ID || rows[got.Free].TimeNS != got.FreeNS) || got.Free == o.Rows && got.FreeNS != o.EndNS {
					t.Fatalf("%+v is freed at row %d", got, got.Free)
				}
			}
			for _, d := range o.Devices {
				checkLive(t, d, table, o.Rows)
			}
		})
	}
}

// checkLive compares the live bytes of a device's table with its overview.
func checkLive(t *testing.T, d *overview.Device, table []tensorRow, rows int64) {
	t.Helper()
	if !d.Framework() {
		return // the memory of a driver's pools is in no allocation
	}
	allocs, unfreed, live := int64(0), int64(0), int64(0)
	for _, x := range table {
		if x.Device != d.Ordinal {
			continue
		}
		allocs++
		if x.Free == rows {
			unfreed++
		}
		if x.Alloc <= d.PeakRow && x.Free > d.PeakRow {
			live += x.Size
		}
	}
	if allocs != d.Allocs || unfreed != d.Unfreed || live != d.PeakLive {
		t.Errorf("device %d: %d allocations, %d never freed, %d live bytes at the peak, want %d, %d and %d",
			d.Ordinal, allocs, unfreed, live, d.Allocs, d.Unfreed, d.PeakLive)
	}
}

// TestTensorsOfDriver checks that a device without rows of a framework has the driver's memory, but not what is beside it.
func TestTensorsOfDriver(t *testing.T) {
	x := made(t, trace.Meta{Devices: []string{"A"}}, []string{"memory by=nccl", "pinned"}, []trace.Event{
		{TimeNS: 1, Op: trace.OpAlloc, ID: 1, Size: 10, Level: trace.LevelDriver, Tag: 1},
		{TimeNS: 2, Op: trace.OpAlloc, ID: 2, Size: 20, Level: trace.LevelDriver, Tag: 2},
		{TimeNS: 3, Op: trace.OpFree, ID: 1, Level: trace.LevelDriver},
		{TimeNS: 4, Op: trace.OpAlloc, ID: 3, Size: 30, Device: 1},
		{TimeNS: 5, Op: trace.OpFreeRequested, ID: 3, Device: 1},
		{TimeNS: 6, Op: trace.OpFreeCompleted, ID: 3, Device: 1},
	})
	table, meta := x.table(t)
	if len(table) != 2 || len(meta.Devices) != 1 {
		t.Fatalf("%d rows, %+v", len(table), meta)
	}
	first, second := table[0], table[1]
	if first.ID != 1 || first.Free != 2 || first.label != (tags.Label{Tag: "memory by=nccl", Rule: tags.RuleRecorded, Certainty: tags.Recorded}) {
		t.Errorf("%+v", first)
	}
	if second.ID != 3 || second.Free != 5 || second.FreeNS != 6 || second.label.Certainty != tags.Guessed {
		t.Errorf("%+v", second)
	}
}
