package tags

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gm/formats/trace"
)

// writer makes a trace.
type writer struct {
	t      testing.TB
	out    bytes.Buffer
	w      *trace.Writer
	b      trace.Batch
	nextID int64
	names  map[string]int64 // ids
}

func newWriter(t testing.TB) *writer {
	w := &writer{t: t, names: map[string]int64{}}
	w.w = trace.NewWriter(&w.out, trace.Meta{})
	return w
}

func (w *writer) row(e trace.Event) {
	e.TimeNS = int64(w.b.Len())
	w.b.Append(e)
}

// alloc makes an allocation with a name of its own.
func (w *writer) alloc(name string, size int64, tag string, stack ...string) int64 {
	w.nextID++
	w.names[name] = w.nextID
	e := trace.Event{Op: trace.OpAlloc, ID: w.nextID, Size: size, Tag: w.w.Strings().Code(tag)}
	if len(stack) > 0 {
		e.Stack = w.w.Strings().Code(stack[0])
	}
	w.row(e)
	return w.nextID
}

func (w *writer) free(ids ...int64) {
	for _, id := range ids {
		w.row(trace.Event{Op: trace.OpFree, ID: id})
	}
}

func (w *writer) mark(text string) {
	w.row(trace.Event{Op: trace.OpMark, Tag: w.w.Strings().Code(text)})
}

func (w *writer) file() []byte {
	w.t.Helper()
	if err := w.w.Write(&w.b); err != nil {
		w.t.Fatal(err)
	}
	if err := w.w.Close(); err != nil {
		w.t.Fatal(err)
	}
	return w.out.Bytes()
}

func (w *writer) derive() *Tags {
	w.t.Helper()
	labels, err := Derive(open(w.t, w.file()))
	if err != nil {
		w.t.Fatal(err)
	}
	return labels
}

const layers = 10

// parameter is the size of a layer's parameters.
func parameter(layer int) int64 { return int64(layer+1) << 20 }

// job writes a training loop: parameters, and steps of forward, backward and AdamW. If marked, the optimizer's steps have marks.
func job(w *writer, steps int, marked bool, stack func(origin) []string) {
	for i := range layers {
		w.alloc("parameter", parameter(i), "", stack(building)...)
	}
	for n := range steps {
		input := w.alloc("input", 4096, "", stack(unsaid)...)
		var activations, gradients, temporaries []int64
		for range layers {
			w.free(w.alloc("forward temporary", 5<<20, "", stack(forward)...))
			activations = append(activations, w.alloc("activation", 9<<20+int64(n*4096), "", stack(forward)...))
			if n == 0 && len(activations) == 1 {
				w.alloc("workspace", 32<<20, "", stack(forward)...)
			}
		}
		w.alloc("leak", 12345, "", stack(forward)...)
		for i := range layers {
			w.free(w.alloc("backward temporary", 7<<20, ""))
			gradients = append(gradients, w.alloc("gradient", parameter(layers-1-i), ""))
			w.free(activations[layers-1-i])
		}
		if marked {
			w.mark("Optimizer.step#AdamW.step START")
		}
		for i := range layers {
			if n == 0 {
				w.alloc("state", parameter(i), "", stack(update)...)
				w.alloc("state", parameter(i), "", stack(update)...)
			}
			temporaries = append(temporaries, w.alloc("step temporary", parameter(i), "", stack(update)...))
		}
		w.free(temporaries...)
		if marked {
			w.mark("Optimizer.step#AdamW.step END")
		}
		w.free(gradients...)
		w.free(input)
	}
}

// accumulating writes a training loop whose optimizer, SGD, makes a step after every second batch.
func accumulating(w *writer, steps int, marked bool) {
	for i := range layers {
		w.alloc("parameter", parameter(i), "")
	}
	for range steps {
		var gradients []int64
		for batch := range 2 {
			var activations []int64
			for i := range layers {
				w.free(w.alloc("forward temporary", 5<<20, ""))
				activations = append(activations, w.alloc("activation", 9<<20+int64(i*4096), ""))
			}
			for i := range layers {
				w.free(w.alloc("backward temporary", 7<<20, ""))
				g := w.alloc("gradient", parameter(layers-1-i), "")
				if batch == 0 {
					gradients = append(gradients, g)
				} else {
					w.free(g) // added to the first
				}
				w.free(activations[layers-1-i])
			}
		}
		if marked {
			w.mark("Optimizer.step#SGD.step START")
			w.mark("Optimizer.step#SGD.step END")
		}
		w.names["first gradient"] = gradients[0]
		w.free(gradients...)
	}
}

func TestAccumulation(t *testing.T) {
	for name, marked := range map[string]bool{"by lifetimes": false, "by marks": true} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(t)
			accumulating(w, 6, marked)
			labels := w.derive()
			for name, want := range map[string]string{
				"parameter": Parameters, "activation": Activations, "first gradient": Gradients, "forward temporary": Temporaries,
				"backward temporary": Temporaries,
			} {
				if got := labels.Of(w.names[name]); got.Tag != want {
					t.Errorf("%s is of %v, want %s", name, got, want)
				}
			}
		})
	}
}

func noStacks(origin) []string { return nil }

// stacks returns a stack of each origin.
func stacks(o origin) []string {
	return []string{"main (train.py:1);" + map[origin]string{
		unsaid: "load (train.py:2)", building: "_apply (/torch/nn/modules/module.py:9)", forward: "forward (/torch/nn/modules/linear.py:9)",
		update: "step (/torch/optim/adamw.py:9);f (x.py:1)",
	}[o]}
}

func TestJob(t *testing.T) {
	for name, c := range map[string]struct {
		steps  int
		marked bool
		stack  func(origin) []string
	}{
		"by lifetimes": {6, false, noStacks}, "by marks": {5, true, noStacks}, "by marks and stacks": {5, true, stacks},
		"by lifetimes and stacks": {6, false, stacks},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(t)
			job(w, c.steps, c.marked, c.stack)
			labels := w.derive()
			for name, want := range map[string]string{ // of the last of each name
				"parameter": Parameters, "state": Optimizer, "workspace": Workspaces, "activation": Activations, "gradient": Gradients,
				"forward temporary": Temporaries, "backward temporary": Temporaries, "step temporary": Temporaries, "input": Activations,
				"leak": Held,
			} {
				if got := labels.Of(w.names[name]); got.Tag != want {
					t.Errorf("%s is of %v, want %s", name, got, want)
				}
			}
		})
	}
}

// TestCertainty checks that a tag is a guess unless the trace has it, or a stack or a mark names a step of training.
func TestCertainty(t *testing.T) {
	untold := func(origin) []string { return stacks(unsaid) }
	for name, c := range map[string]struct {
		marked bool
		stack  func(origin) []string
		want   Certainty
	}{
		"no stacks": {false, noStacks, Guessed}, "stacks of other code": {false, untold, Guessed}, "marks": {true, noStacks, Inferred},
		"stacks": {false, stacks, Inferred}, "marks, stacks of other code": {true, untold, Inferred},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(t)
			job(w, 6, c.marked, c.stack)
			w.alloc("own", 100, "kv cache")
			labels := w.derive()
			for _, name := range []string{"parameter", "activation", "gradient", "forward temporary", "leak"} {
				if got := labels.Of(w.names[name]); got.Certainty != c.want {
					t.Errorf("%s: %+v, want %s", name, got, c.want)
				}
			}
			if got := labels.Of(w.names["own"]); got.Certainty != Recorded {
				t.Errorf("a recorded tag: %+v", got)
			}
		})
	}
}

// TestRecorded checks that tags of the trace take precedence, and that blocks older than the recording are no temporaries.
func TestRecorded(t *testing.T) {
	w := newWriter(t)
	w.alloc("old", 100, trace.PreexistingTag(0))
	w.alloc("own", 100, "kv cache")
	w.free(w.alloc("short", 100, ""))
	long := w.alloc("long", 100, "")
	for range short {
		w.free(w.alloc("other", 1, ""))
	}
	w.free(long)
	labels := w.derive()
	for name, want := range map[string]Label{
		"own": {"kv cache", RuleRecorded, Recorded}, "old": {Unknown, "older than the recording", NoTag},
		"short": {Temporaries, "freed before 64 others were made", Guessed}, "long": {Unknown, ruleNone, NoTag},
	} {
		if got := labels.Of(w.names[name]); got != want {
			t.Errorf("%s is of %v, want %v", name, got, want)
		}
	}
	if colors := labels.Colors(); colors["kv cache"] < len(Derived()) || colors[Activations] != 5 {
		t.Errorf("the colours are %v", colors)
	}
	if all := labels.Names(); all[len(all)-1] != Unknown || all[len(all)-2] != "kv cache" {
		t.Errorf("names %q", all)
	}
	if got := labels.Of(1 << 40); got.Tag != Unknown {
		t.Errorf("an id that is none is of %v", got)
	}
}

func TestOrigin(t *testing.T) {
	const module = "_call_impl (/p/torch/nn/modules/module.py:1)"
	for folded, want := range map[string]origin{
		"": unsaid, "main (a.py:1)": unsaid,
		"main (a.py:1);_apply (/p/torch/nn/modules/module.py:934);<lambda> (/p/torch/nn/modules/module.py:1)":  building,
		"main (a.py:1);" + module + ";forward (m.py:3);relu (/p/torch/nn/functional.py:1)":                     forward,
		"step (train.py:3);" + module + ";forward (m.py:3)":                                                    forward,
		"main (a.py:1);backward (/p/torch/_tensor.py:631)":                                                     backward,
		"main (a.py:1);wrapper (/p/torch/optim/optimizer.py:1);step (/p/torch/optim/adam.py:2)":                update,
		"main (a.py:1);step (/p/torch/optim/lbfgs.py:2);closure (a.py:9);" + module:                            forward,
		"unpack_hook (/p/torch/utils/checkpoint.py:1);recompute_fn (/p/torch/utils/checkpoint.py:2);" + module: recompute,
		"main (a.py:1);checkpoint (/p/torch/utils/checkpoint.py:1);" + module:                                  forward,
		"forward (m.py:1);aten::linear;autograd::engine::evaluate_function: AddmmBackward0;aten::sum":          backward,
		"torch::autograd::Engine::thread_main() (??:0);at::empty() (??:0)":                                     backward,
	} {
		if got := originOf(folded); got != want {
			t.Errorf("%q: %d, want %d", folded, got, want)
		}
	}
}

// FuzzDerive checks that each allocation has a tag and a rule, the same each time, for any allocations and frees.
func FuzzDerive(f *testing.F) {
	f.Add(uint64(1), uint16(500), true)
	f.Add(uint64(2), uint16(3), false)
	f.Fuzz(func(t *testing.T, seed uint64, rows uint16, marked bool) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newWriter(t)
		var live []int64
		for range rows % 2000 {
			switch n := rng.IntN(40); {
			case n < 20 || len(live) == 0:
				live = append(live, w.alloc("", int64(1+rng.IntN(8))<<rng.IntN(40), map[bool]string{true: "preexisting"}[n == 0]))
			case n == 39 && marked:
				w.mark([]string{"step", "Optimizer.step#A START", "Optimizer.step#A END", "epoch"}[rng.IntN(4)])
			default:
				i := rng.IntN(len(live))
				w.free(live[i])
				live = append(live[:i], live[i+1:]...)
			}
		}
		file := w.file()
		first, err := Derive(open(t, file))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Derive(open(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for id := range w.nextID {
			l := first.Of(id + 1)
			if l.Tag == "" || l.Rule == "" || l != again.Of(id+1) {
				t.Fatalf("allocation %d: %v, then %v", id+1, l, again.Of(id+1))
			}
		}
	})
}

func BenchmarkDerive(b *testing.B) {
	w := newWriter(b)
	job(w, 200, false, noStacks)
	file := w.file()
	for b.Loop() {
		if _, err := Derive(open(b, file)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(w.b.Len()), "ns/row")
}
