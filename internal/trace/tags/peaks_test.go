package tags

import (
	"os"
	"testing"

	"gm/formats/trace"
)

// TestPeaks compares the peaks of tags of a real run with a count of what lives after each row.
func TestPeaks(t *testing.T) {
	const name = "../../../testdata/captures/opt1.3b.parquet"
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	reader := func() *trace.Reader {
		r, err := trace.NewReader(file, info.Size(), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	labels, err := Derive(reader())
	if err != nil {
		t.Fatal(err)
	}
	peaks, err := labels.Peaks(reader())
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string][]int64{} // by tag, in the order of the rows
	of := map[int64]*trace.Event{}
	err = trace.Each(reader(), func(_ int64, e *trace.Event) error {
		row := *e
		switch {
		case e.Level != trace.LevelFramework:
		case e.Op == trace.OpAlloc:
			of[e.ID] = &row
			tag := TagOf(labels.Of(e.ID).Name())
			changes[tag] = append(changes[tag], e.Size)
		case (e.Op == trace.OpFree || e.Op == trace.OpFreeCompleted) && of[e.ID] != nil:
			tag := TagOf(labels.Of(e.ID).Name())
			changes[tag] = append(changes[tag], -of[e.ID].Size)
			delete(of, e.ID)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(peaks) != 1 || len(peaks[0]) != len(changes) || len(changes) < 4 {
		t.Fatalf("%d GPUs, tags %v, want those of %d", len(peaks), peaks[0], len(changes))
	}
	for tag, all := range changes {
		live, most := int64(0), int64(0)
		for _, change := range all {
			live += change
			most = max(most, live)
		}
		if peaks[0][tag] != most {
			t.Errorf("%s: %d bytes, want %d", tag, peaks[0][tag], most)
		}
	}
}
