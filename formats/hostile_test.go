// Package formats_test holds tests that all formats pass.
package formats_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"gm/formats/column"
	"gm/formats/column/columntest"
	"gm/formats/plan"
	"gm/formats/trace"
)

// allocBound is how many bytes may be allocated in all, freed ones included, while a damaged file of a few KiB is
// read: a page header can ask for one page, which is then not there.
const allocBound = 2 * column.MaxPage

// TestDamaged reads 20 000 damaged files: none may panic, hang, or take more memory than allocBound.
func TestDamaged(t *testing.T) {
	seeds := []struct {
		name string
		file []byte
		read func([]byte) error
	}{
		{"trace", smallTrace(t), readTrace},
		{"plain trace", plain(t, smallTrace(t)), readTrace},
		{"plan", smallPlan(t), readPlan},
		{"plain plan", plain(t, smallPlan(t)), readPlan},
	}
	for _, seed := range seeds {
		t.Run(seed.name, func(t *testing.T) {
			if err := seed.read(seed.file); err != nil {
				t.Fatalf("undamaged: %v", err)
			}
			rng := rand.New(rand.NewPCG(3, 5))
			refused, most := 0, uint64(0)
			for i := range 5000 {
				file := columntest.Mutate(rng, seed.file)
				taken, err := measure(func() error { return seed.read(file) })
				if err != nil {
					refused++
				}
				if most = max(most, taken); taken > allocBound {
					t.Fatalf("mutation %d took %d bytes: %v", i, taken, err)
				}
			}
			t.Logf("%d bytes: %d of 5000 refused, at most %d KiB allocated", len(seed.file), refused, most>>10)
		})
	}
}

// measure returns how many bytes f allocates.
func measure(f func() error) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

func plain(t *testing.T, file []byte) []byte {
	t.Helper()
	out, err := columntest.Plain(file)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readTrace(file []byte) error {
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		return err
	}
	for err == nil {
		_, err = r.Next()
	}
	return ended(err)
}

func readPlan(file []byte) error {
	r, err := plan.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		return err
	}
	for err == nil {
		_, err = r.Next()
	}
	return ended(err)
}

func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// smallTrace is a trace with every op and every kind of text.
func smallTrace(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{Devices: []string{"H200", "H200"}, Host: "gpu1", PID: 7})
	b := &trace.Batch{}
	add := func(e trace.Event) {
		e.TimeNS, e.Thread = int64(1000*b.Len()+b.Len()%7), 40
		b.Append(e)
	}
	add(trace.Event{Op: trace.OpSegmentAlloc, Size: 1 << 21, Level: trace.LevelDriver})
	for i := range int64(300) {
		add(trace.Event{
			Op: trace.OpAlloc, ID: i + 1, Size: 512 * (1 + i%9), Addr: 1<<46 + uint64(i%50)<<12, Device: int32(i & 1),
			Pool: w.Strings().Code(fmt.Sprint("pool ", i/200)), Stack: w.Strings().Code(fmt.Sprint("main;step;f", i%31)),
		})
		switch {
		case i%3 == 0:
			add(trace.Event{Op: trace.OpFree, ID: i + 1})
		case i%3 == 1 && i > 30:
			add(trace.Event{Op: trace.OpFreeRequested, ID: i - 29})
			add(trace.Event{Op: trace.OpFreeCompleted, ID: i - 29})
		}
	}
	for op := trace.OpSegmentFree; op <= trace.OpMark; op++ {
		add(trace.Event{Op: op, Tag: w.Strings().Code("note")})
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func smallPlan(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := plan.NewWriter(&out, plan.Meta{Peak: 1 << 20, Alignment: 512, Rows: 1000, Solver: "none"})
	b := &plan.Batch{}
	for i := range int64(400) {
		b.Append(plan.Tensor{
			ID: i + 1, Size: 512 * (1 + i%9), Alloc: 2 * i, Free: 2*i + 1 + i%100, AllocNS: 1000 * i, FreeNS: 1000*i + 77,
			Device: int32(i & 1), Stream: i % 3, Arena: w.Strings().Code(fmt.Sprint("arena ", i%5)), Offset: 512 * (i % 100),
		})
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
