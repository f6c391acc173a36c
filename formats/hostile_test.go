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
	"gm/formats/graph"
	"gm/formats/plan"
	"gm/formats/schedule"
	"gm/formats/trace"
)

// allocBound is the most bytes that reading a damaged file of a few KiB may allocate in total, freed ones included: a
// page header can state a size that makes the reader allocate one whole page.
const allocBound = 2 * column.MaxPage

const damagedFiles = 20_000

// TestDamaged reads damaged files of each kind: none may panic, hang, or take more memory than allocBound.
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
		{"graph", smallGraph(t), readGraph},
		{"plain graph", plain(t, smallGraph(t)), readGraph},
		{"schedule", smallSchedule(t), readSchedule},
		{"plain schedule", plain(t, smallSchedule(t)), readSchedule},
	}
	for _, seed := range seeds {
		t.Run(seed.name, func(t *testing.T) {
			if err := seed.read(seed.file); err != nil {
				t.Fatalf("undamaged: %v", err)
			}
			rng := rand.New(rand.NewPCG(3, 5))
			refused, most := 0, uint64(0)
			for i := range damagedFiles / len(seeds) {
				file := columntest.Mutate(rng, seed.file)
				taken, err := measure(func() error { return seed.read(file) })
				if err != nil {
					refused++
				}
				if most = max(most, taken); taken > allocBound {
					t.Fatalf("mutation %d took %d bytes: %v", i, taken, err)
				}
			}
			t.Logf("%d bytes: %d of %d refused, at most %d KiB allocated", len(seed.file), refused, damagedFiles/len(seeds), most>>10)
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
	return drain(trace.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet"))
}

func readPlan(file []byte) error {
	return drain(plan.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet"))
}

func readGraph(file []byte) error {
	return drain(graph.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet"))
}

func readSchedule(file []byte) error {
	return drain(schedule.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet"))
}

// drain reads a file to its end.
func drain[B, M any](r *column.Reader[B, M], err error) error {
	for err == nil {
		_, err = r.Next()
	}
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

// smallGraph is a chain of operators. Each but the last writes a tensor, computed from the last two, which the next one reads.
func smallGraph(t *testing.T) []byte {
	t.Helper()
	const ops = 150
	var out bytes.Buffer
	w := graph.NewWriter(&out, graph.Meta{Name: "chain", Operators: ops, Tensors: ops - 1, Source: graph.SourceRecorded})
	b := &graph.Batch{}
	code := w.Strings().Code
	for op := range int64(ops) {
		phase := graph.Phase(op * 3 / ops)
		r := graph.NewRow(graph.KindOp, op, phase)
		r.Name, r.Type, r.Layer, r.DurationNS, r.BaseBytes = code(fmt.Sprint("layer ", op)), code("linear"), int32(op/10), 1000*op%777, op<<20
		b.Append(r)
		if op > 0 {
			r = graph.NewRow(graph.KindUse, op, phase)
			r.Tensor = op - 1
			b.Append(r)
		}
		if op == ops-1 {
			break
		}
		r = graph.NewRow(graph.KindTensor, op, phase)
		r.Tensor, r.Name, r.Bytes, r.RecomputeNS, r.Role = op, code(fmt.Sprint("saved ", op%31)), 512*(1+op%9), op, code("inner")
		r.Saved, r.Version, r.DType, r.Shape = int32(op), op%2, code("half"), code(fmt.Sprint("[", op%9+1, ", 256]"))
		b.Append(r)
		for input := max(0, op-2); input < op; input++ {
			r = graph.NewRow(graph.KindFrom, op, phase)
			r.Tensor, r.Input = op, input
			b.Append(r)
		}
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// smallSchedule copies tensors to the host, each to its own place, and back.
func smallSchedule(t *testing.T) []byte {
	t.Helper()
	const tensors = 100
	var out bytes.Buffer
	w := schedule.NewWriter(&out, schedule.Meta{Operators: 2 * tensors, Tensors: tensors, Policy: "all", Link: "{}", HostPeak: 1 << 20})
	b := &schedule.Batch{}
	add := func(kind schedule.Kind, tensor, at, bytes, slot int64) {
		name := w.Strings().Code(fmt.Sprint("saved ", tensor%31))
		b.Append(schedule.Action{Kind: kind, Tensor: tensor, Name: name, Operator: at, Bytes: bytes, Slot: slot, Lane: kind.Lane()})
	}
	for i := range int64(tensors) {
		add(schedule.Offload, i, i, 512*(1+i%9), 8192*i)
		add(schedule.Free, i, i, 0, -1)
	}
	for i := range int64(tensors) {
		add(schedule.Prefetch, i, tensors+i, 512*(1+i%9), 8192*i)
		add(schedule.Kind(3+i%3), i, tensors+i, 0, -1)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
