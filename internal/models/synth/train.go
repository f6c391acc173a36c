package synth

import (
	"fmt"
	"math/rand/v2"

	"gm/formats/trace"
)

// trainer runs a job step by step.
type trainer struct {
	machine
	job    *Job
	shape  shape
	net    *decoder
	params []*param
	random *rand.Rand
	step   int64

	root    *unit // under FSDP
	units   []*unit
	copied  *tensor // what ranks sent, of the last unit of the forward pass
	micros  []*micro
	micro   *micro    // that is executed
	outputs []*tensor // of the microbatches of the last stage, until the next step
	copies  []*tensor // of parameters, in half precision
	host    float64   // when the copies to the host that are under way end
	ids     *tensor   // of this step
	words   []*tensor // embedded tokens that need a gradient, of this step and the last
	leaves  []*node   // where those gradients stay
	loss    *tensor
	started bool // the optimizer has its states
}

// Run is how much of a job is written: at least this many steps, and at least this many rows.
type Run struct {
	Seed        uint64 // of the lengths
	Steps, Rows int64
}

// Write writes the trace of a job: its parameters, and then its steps. It calls progress after each step and returns the writer's error. The
// metadata of the trace is set.
func Write(w *trace.Writer, job *Job, run Run, progress func(steps, rows int64)) error {
	*w.Meta() = job.meta()
	t := &trainer{
		job: job, machine: machine{recorder: newRecorder(w), device: job.Device, tensors: job.Tensor}, random: rand.New(rand.NewPCG(run.Seed, 0)),
	}
	t.ready = t.gradientReady
	t.load()
	for t.err == nil && (t.step < run.Steps || t.rows < run.Rows) {
		t.train()
		t.step++
		progress(t.step, t.rows)
	}
	t.flush()
	if t.err != nil {
		return fmt.Errorf("make %s: %w", job.spec, t.err)
	}
	return nil
}

// load makes the parameters and the adapters, or this rank's shards of them. On one GPU adapters are first in half precision, as the
// rest of the model, and then in their own.
func (t *trainer) load() {
	t.at = place{phase: phaseLoad}
	t.shape = shape{Transformer: t.job.local(), context: t.job.Context, exchanged: t.job.Experts}
	b := &builder{lora: t.job.Strategy.LoRA, rank: t.job.Adapters, job: t.job}
	t.net = build(&t.machine, &t.shape, b)
	t.params = b.all
	var adapters []*param
	for _, p := range t.params {
		t.in(p.name)
		switch {
		case !t.resident():
		case b.lora && p.trainable && !t.job.sharded():
			adapters = append(adapters, p)
		default:
			t.alloc(p.shard(), parameter)
		}
	}
	for range 2 { // as they are, and as they were before any scaling
		if columns := t.shape.Turned(); columns > 0 {
			t.in("rotary.frequencies")
			t.alloc(statisticBytes*columns/2, parameter)
		}
	}
	if t.net.head != nil && t.net.head == t.net.table && t.resident() { // made, and then tied to the table
		t.in("lm_head")
		t.briefly(t.net.table.shard())
	}
	var first []*tensor
	for _, p := range adapters {
		t.in(p.name)
		first = append(first, t.alloc(p.bytes()*half/p.element, parameter))
	}
	for i, p := range adapters {
		t.in(p.name)
		t.alloc(p.bytes(), parameter)
		t.drop(first[i])
	}
	t.shard()
	t.prepare()
}

// resident reports whether parameters live on the GPU: offload with FSDP keeps them on the host.
func (t *trainer) resident() bool { return !t.job.Strategy.Offload || !t.job.sharded() }

// train runs a step.
func (t *trainer) train() {
	t.shape.batch, t.shape.sequence = t.job.Batch, t.job.Lengths.next(t.random, t.step)/t.job.Context
	t.shape.tokens = t.shape.batch * t.shape.sequence
	t.at = place{phase: phaseForward}
	t.in("batch")
	ids := t.alloc(indexBytes*t.shape.tokens*t.job.Micro, activation)
	t.drop(t.ids)
	t.ids = ids
	t.drop(t.outputs...)
	t.outputs = nil
	t.halve()
	for _, p := range t.job.schedule() {
		t.pass(p)
	}
	t.merge()
	t.drop(t.copies...)
	t.copies = nil
	t.update()
	t.wait()
	t.mark()
}

// merge puts the outputs of all microbatches together for the program, as PyTorch's schedules of pipelines do.
func (t *trainer) merge() {
	size := int64(0)
	for _, out := range t.outputs {
		size += out.size
	}
	if size > 0 {
		t.at = place{phase: phaseForward, operator: "merge"}
		t.briefly(size)
	}
}

// forward runs the model up to the last normalization.
func (t *trainer) forward() *tensor {
	t.gather(t.root)
	t.at.module = "embed"
	x := t.inputs()
	for i, l := range t.net.layers {
		t.at.module = l.name
		x = t.layer(i, l, x)
	}
	t.at.module = ""
	y := x
	if t.job.last() {
		y = t.finalNorm(x)
		t.drop(x)
	}
	t.drop(t.net.held...)
	t.net.held, t.net.passed = nil, nil
	return y
}

// layer runs a layer and frees its input.
func (t *trainer) layer(i int, l *layer, x *tensor) *tensor {
	u := t.unitOf(i)
	t.gather(u)
	in := x
	if u != nil {
		in = t.hook(x, func() { t.scatterGradients(u) })
		t.drop(x)
	}
	t.at.module = l.name
	var y *tensor
	if t.job.Strategy.Recompute {
		y = t.checkpoint(l.forward, in, t.net.passed)
	} else {
		y = l.forward(in)
	}
	t.drop(in)
	if u == nil {
		return y
	}
	if t.job.Zero > fully {
		t.release(u)
	}
	out := t.hook(y, func() { t.gatherAgain(i) })
	t.drop(y)
	return out
}

func (t *trainer) finalNorm(x *tensor) *tensor {
	if t.net.final.bias == nil {
		return t.rmsNorm(t.net.final, x, t.shape.Hidden)
	}
	return t.layerNorm(t.net.final, x, t.shape.Hidden)
}
