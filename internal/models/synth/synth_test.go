package synth

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/models/shapes"
	"gm/internal/trace/tags"
)

// small is what makes any model small.
const small = ",layers=2,hidden=256,heads=4,vocab=500,batch=3,seq=48"

// strategies lists all combinations of letters that matter.
func strategies() []string {
	return []string{"N", "L", "R", "O", "LR", "LO", "RO", "LRO"}
}

// TestStepsLeaveNothing checks on every model, strategy and number of ranks that steps of one length end with the same bytes live, from
// the second on, and that the trace is valid, which the reader and the writer check.
func TestStepsLeaveNothing(t *testing.T) {
	for _, m := range shapes.Transformers() {
		for _, letters := range strategies() {
			for _, ranks := range []int{1, 3} {
				if m.Groups != m.Heads && ranks > 1 {
					continue
				}
				spec := fmt.Sprintf("%s%s,ranks=%d", m.Name, small, ranks)
				if m.Groups != m.Heads {
					spec = strings.Replace(spec, "heads=4", "heads=8", 1)
				}
				ends := liveAtMarks(t, mustWrite(t, spec, letters, Run{Steps: 5}))
				if len(ends) != 5 || slices.Min(ends[1:]) != slices.Max(ends[1:]) {
					t.Errorf("%s %s: live bytes at the ends of steps: %v", spec, letters, ends)
				}
			}
		}
	}
}

// liveAtMarks returns the bytes that are live, freed ones that copies still read left out, at each mark.
func liveAtMarks(t *testing.T, data []byte) (ends []int64) {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "trace")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	live := int64(0)
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		switch e.Op {
		case trace.OpAlloc:
			live += e.Size
		case trace.OpFreeRequested:
			live -= e.Size
		case trace.OpMark:
			ends = append(ends, live)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

// TestStrategiesSave checks that each strategy takes less at the peak than what it is added to, where it should.
func TestStrategiesSave(t *testing.T) {
	peak := func(spec, letters string) int64 {
		_, peak := lifetimes(t, mustWrite(t, spec, letters, Run{Steps: 2}))
		return peak
	}
	for _, model := range []string{"opt-1.3b", "gpt2-xl", "llama-7b,layers=8", "gpt-neox-20b,layers=8"} {
		spec := model + ",batch=16,seq=1Ki"
		plain, recompute, offload, lora := peak(spec, "N"), peak(spec, "R"), peak(spec, "O"), peak(spec, "L")
		if recompute >= plain || offload >= plain || lora >= plain || peak(spec, "LR") >= min(lora, recompute) {
			t.Errorf("%s: peak %d, R %d, O %d, L %d", spec, plain, recompute, offload, lora)
		}
		if shared := peak(spec+",ranks=8", "R"); shared >= recompute {
			t.Errorf("%s: peak of one of 8 ranks %d, of a single GPU %d", spec, shared, recompute)
		}
	}
}

// TestParametersAreCounted adds up the parameters that traces are made with.
func TestParametersAreCounted(t *testing.T) {
	for _, m := range shapes.Transformers() {
		b := &builder{job: &Job{Model: m, Ranks: 1, Layout: Layout{Context: 1, Tensor: 1, Experts: 1, Stages: 1}}}
		build(&machine{tensors: 1}, &shape{Transformer: &m, exchanged: 1}, b)
		sum := int64(0)
		for _, p := range b.all {
			sum += p.rows * p.columns
		}
		if want := m.Parameters(); sum != want {
			t.Errorf("%s: %d parameters are made, %d are counted", m.Name, sum, want)
		}
	}
}

// TestSeed checks that a seed makes one trace, and another seed another.
func TestSeed(t *testing.T) {
	spec := "opt-1.3b,layers=2,batch=2,seq=16..512"
	first := mustWrite(t, spec, "N", Run{Seed: 1, Steps: 4})
	if !bytes.Equal(first, mustWrite(t, spec, "N", Run{Seed: 1, Steps: 4})) {
		t.Error("a seed makes different traces")
	}
	if bytes.Equal(first, mustWrite(t, spec, "N", Run{Seed: 2, Steps: 4})) {
		t.Error("two seeds make the same trace")
	}
}

// TestRows checks that steps go on until there are so many rows, and are finished.
func TestRows(t *testing.T) {
	all, _ := lifetimes(t, mustWrite(t, "opt-1.3b"+small, "R", Run{Rows: 20_000}))
	if n := int64(len(all)); n < 20_000/3 || n > 10_000 {
		t.Errorf("%d allocations", n)
	}
	ends := liveAtMarks(t, mustWrite(t, "opt-1.3b"+small, "R", Run{Rows: 20_000}))
	if len(ends) < 2 || ends[len(ends)-1] != ends[1] {
		t.Errorf("steps end with %v bytes", ends)
	}
}

func TestParseFails(t *testing.T) {
	for spec, want := range map[string]string{
		"":                        "unknown, expected one of gpt-7b, ",
		"opt":                     "unknown, expected one of ",
		"opt-13b,batch":           `"batch" is not of the form name=value`,
		"opt-13b,batch=0":         "batch: 0 is not within 1 and ",
		"opt-13b,batch=1,batch=2": "batch is given twice",
		"opt-13b,size=3":          `unknown parameter "size", expected one of device, seq, batch, `,
		"opt-13b,seq=9..3":        "seq: 3 is not within 9 and ",
		"opt-13b,seq=1/2/x":       `seq: "x" is not a number`,
		"opt-13b,heads=3":         "a hidden size of 5120 cannot be split among 3 heads",
		"opt-13b,heads=1280":      "heads of 4 numbers: attention takes multiples of 8",
		"llama-8b,heads=4":        "4 heads cannot be split among 8 groups",
		"opt-13b,rank=1":          "rank 1 of 1: ranks count from 0",
		"opt-13b,device=abacus":   `unknown device "abacus"`,
	} {
		_, err := Parse(spec, Strategy{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
	for _, letters := range []string{"X", "LL", "NL", "lr"} {
		if _, err := ParseStrategy(letters); err == nil {
			t.Errorf("strategy %q is taken", letters)
		}
	}
}

// TestTooLarge checks that an allocation beyond what a trace holds fails.
func TestTooLarge(t *testing.T) {
	job, err := Parse("gpt-65b,layers=1,batch=64Ki,seq=16Mi", Strategy{})
	if err != nil {
		t.Fatal(err)
	}
	err = Write(trace.NewWriter(io.Discard, trace.Meta{}), job, Run{Steps: 1}, func(int64, int64) {})
	if err == nil || !strings.Contains(err.Error(), "alloc of 18014398509481984 bytes") {
		t.Errorf("got %v", err)
	}
}

// FuzzParse makes a step of whatever small job a text describes.
func FuzzParse(f *testing.F) {
	f.Add("opt-13b,batch=16,seq=256..1024,ranks=4,rank=3", "LRVO")
	f.Add("llama-8b,seq=1/2/3,heads=8", "R")
	f.Add("gpt-65b,ffn=1,hidden=64,heads=2,lora=2,device=a800", "")
	f.Fuzz(func(t *testing.T, spec, letters string) {
		s, err := ParseStrategy(letters)
		if err != nil {
			return
		}
		job, err := Parse(spec, s)
		if err != nil {
			return
		}
		job.Model.Layers = min(job.Model.Layers, 2)
		w := trace.NewWriter(io.Discard, trace.Meta{})
		err = Write(w, job, Run{Steps: 1}, func(int64, int64) {})
		if err == nil {
			err = w.Close()
		}
		if tooLarge := regexp.MustCompile(`alloc of [1-9]`); err != nil && !tooLarge.MatchString(err.Error()) {
			t.Error(err)
		}
	})
}

// TestStacksAndTags checks what rows say of themselves.
func TestStacksAndTags(t *testing.T) {
	data := mustWrite(t, "opt-1.3b"+small+",ranks=2", "LR", Run{Steps: 1})
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "trace")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := map[string]bool{}
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		if e.Op == trace.OpAlloc {
			seen[r.Strings().Text(e.Stack)+" "+r.Strings().Text(e.Tag)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"load;layer.1.mlp.fc1.weight " + tags.Parameters, "load;layer.0.self_attn.q_proj.lora_A " + tags.Parameters,
		"forward;layer.0;mlp.fc1 " + tags.Activations, "recompute;layer.1;attention " + tags.Activations,
		"backward;layer.1;self_attn.v_proj " + tags.Gradients, "backward;layer.0;attention " + tags.Temporaries,
		"backward;layer.0;reduce_scatter " + tags.Gradients, "forward;root;all_gather " + tags.Parameters,
		"update;adamw " + tags.Optimizer, "backward;head;loss " + tags.Temporaries,
	} {
		if !seen[want] {
			t.Errorf("no allocation is %q", want)
		}
	}
	if m := r.Meta(); m.WorldSize != 2 || m.Rank != 0 || m.Source != "synthetic: opt-1.3b"+small+",ranks=2 --strategy LR" {
		t.Errorf("metadata %+v", m)
	}
}
