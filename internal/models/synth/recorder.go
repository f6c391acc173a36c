package synth

import (
	"gm/formats/trace"
	"gm/internal/trace/tags"
)

// recorder writes the rows of a trace, in the order of time.
type recorder struct {
	w       *trace.Writer
	batch   trace.Batch
	now     float64 // nanoseconds
	id      int64   // of the last allocation
	rows    int64
	leaving []leaving
	stacks  map[place]int32
	tags    [numTags]int32
	err     error // the first of writing
}

// block is an allocation that lives as long as tensors refer to it.
type block struct {
	id, bytes, stream int64
	stack, tag        int32
	refs              int
}

// leaving is a block whose owner has freed it and that a copy still reads until a time.
type leaving struct {
	*block
	until float64
}

// place is where in the model an allocation is made, and in which pass.
type place struct{ phase, module, operator string }

// tag says what an allocation holds.
type tag int8

const (
	parameter tag = iota
	gradient
	optimizer
	activation
	temporary
	numTags
)

func tagNames() [numTags]string {
	return [numTags]string{tags.Parameters, tags.Gradients, tags.Optimizer, tags.Activations, tags.Temporaries}
}

// batchRows is how many rows are written at a time.
const batchRows = 1 << 14

func newRecorder(w *trace.Writer) *recorder {
	r := &recorder{w: w, stacks: map[place]int32{}}
	for i, name := range tagNames() {
		r.tags[i] = w.Strings().Code(name)
	}
	return r
}

// alloc records an allocation with one reference.
func (r *recorder) alloc(bytes, stream int64, at place, t tag) *block {
	r.settle(r.now)
	r.id++
	b := &block{id: r.id, bytes: bytes, stream: stream, stack: r.stack(at), tag: r.tags[t], refs: 1}
	r.add(trace.OpAlloc, b)
	return b
}

// free records that a block is reusable at once.
func (r *recorder) free(b *block) {
	r.add(trace.OpFreeRequested, b)
	r.add(trace.OpFreeCompleted, b)
}

// freeAt records that a block is freed, and reusable only at a later time.
func (r *recorder) freeAt(b *block, until float64) {
	r.add(trace.OpFreeRequested, b)
	r.leaving = append(r.leaving, leaving{b, until})
}

// settle completes what was reusable before a time.
func (r *recorder) settle(now float64) {
	for len(r.leaving) > 0 && r.leaving[0].until <= now {
		r.add(trace.OpFreeCompleted, r.leaving[0].block)
		r.leaving = r.leaving[1:]
	}
}

// mark records the end of a step.
func (r *recorder) mark() {
	r.push(trace.Event{Op: trace.OpMark, Tag: r.w.Strings().Code("step")})
}

func (r *recorder) add(op trace.Op, b *block) {
	r.push(trace.Event{Op: op, ID: b.id, Size: b.bytes, Stream: b.stream, Stack: b.stack, Tag: b.tag})
}

func (r *recorder) push(e trace.Event) {
	e.TimeNS = int64(r.now)
	r.batch.Append(e)
	r.rows++
	if r.batch.Len() == batchRows {
		r.flush()
	}
}

// flush writes the rows that there are.
func (r *recorder) flush() {
	if r.err == nil {
		r.err = r.w.Write(&r.batch)
	}
	r.batch.Reset()
}

// stack returns the code of a place: phase;module;operator.
func (r *recorder) stack(at place) int32 {
	if code, ok := r.stacks[at]; ok {
		return code
	}
	text := at.phase
	for _, name := range []string{at.module, at.operator} {
		if name != "" {
			text += ";" + name
		}
	}
	code := r.w.Strings().Code(text)
	r.stacks[at] = code
	return code
}
