package trace_test

import (
	"fmt"
	"io"
	"math/rand/v2"

	"gm/formats/trace"
)

// synth makes traces like those of training: one step is a script of allocs and frees, replayed with other times and
// ids; addresses are those of a first-fit by size class, tensors live from a few events to a whole step, and one free
// in ten takes two rows.
type synth struct {
	rng    *rand.Rand
	script []scriptEvent
	free   map[int64][]uint64 // addresses by size class
	top    uint64
	time   int64
	id     int64
	live   []liveTensor // by slot of the script
	stacks []int32
}

type scriptEvent struct {
	slot   int
	op     trace.Op
	size   int64
	stream int64
	thread int32
	stack  int
}

type liveTensor struct {
	id   int64
	addr uint64
}

// newSynth makes a script of about n events. It takes its stacks from w unless w is nil.
func newSynth(n int, w *trace.Writer) *synth {
	s := &synth{
		rng: rand.New(rand.NewPCG(1, 2)), free: map[int64][]uint64{}, top: 0x7f0000000000, time: 1_700_000_000_000_000_000,
	}
	sizes := make([]int64, 120)
	for i := range sizes {
		sizes[i] = 512 << s.rng.IntN(19) * (1 + s.rng.Int64N(3))
	}
	var open []scriptEvent
	slots := 0
	for len(s.script) < n-len(open) {
		if len(open) > 0 && s.rng.IntN(100) < 49 {
			i := len(open) - 1 - int(float64(len(open))*s.rng.Float64()*s.rng.Float64())
			s.close(open[i])
			open = append(open[:i], open[i+1:]...)
			continue
		}
		e := scriptEvent{slot: slots, op: trace.OpAlloc, size: sizes[s.rng.IntN(len(sizes))], thread: 4001, stack: s.rng.IntN(800)}
		if s.rng.IntN(10) == 0 {
			e.stream, e.thread = 0x55d0a0b0c0d0, 4002
		}
		slots++
		s.script = append(s.script, e)
		open = append(open, e)
	}
	for _, e := range open {
		s.close(e)
	}
	s.live = make([]liveTensor, slots)
	s.stacks = make([]int32, 800)
	if w != nil {
		for i := range s.stacks {
			s.stacks[i] = w.Strings().Code(stackText(i))
		}
	}
	return s
}

func (s *synth) close(e scriptEvent) {
	e.op = trace.OpFree
	if e.stream != 0 {
		e.op = trace.OpFreeRequested
		s.script = append(s.script, e)
		e.op = trace.OpFreeCompleted
	}
	s.script = append(s.script, e)
}

func stackText(i int) string {
	text := "train.py:1:main"
	for d := range 6 + i%20 {
		text += fmt.Sprintf(";torch/nn/modules/module_%d.py:%d:forward", (i*7+d)%90, 100+i*13%500)
	}
	return text
}

// next appends the rows of one step to b.
func (s *synth) next(b *trace.Batch) {
	for _, e := range s.script {
		s.time += 1500 + s.rng.Int64N(4000)
		l := &s.live[e.slot]
		class := (e.size + 511) &^ 511
		if e.op == trace.OpAlloc {
			s.id++
			l.id = s.id
			if list := s.free[class]; len(list) > 0 {
				l.addr, s.free[class] = list[len(list)-1], list[:len(list)-1]
			} else {
				l.addr = s.top
				s.top += uint64(class)
			}
		} else if e.op != trace.OpFreeRequested {
			s.free[class] = append(s.free[class], l.addr)
		}
		b.Append(trace.Event{
			TimeNS: s.time, Op: e.op, ID: l.id, Size: e.size, Addr: l.addr, Stream: e.stream, Thread: e.thread,
			Stack: s.stacks[e.stack],
		})
	}
}

// write writes at least n rows and returns how many.
func (s *synth) write(w *trace.Writer, n int) (int, error) {
	b := &trace.Batch{}
	rows := 0
	for rows < n {
		b.Reset()
		s.next(b)
		rows += b.Len()
		if err := w.Write(b); err != nil {
			return rows, err
		}
	}
	return rows, w.Close()
}

// countingWriter counts the bytes that it throws away.
type countingWriter int64

func (c *countingWriter) Write(b []byte) (int, error) {
	*c += countingWriter(len(b))
	return len(b), nil
}

var _ io.Writer = (*countingWriter)(nil)
