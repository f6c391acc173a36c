package synth

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/models/shapes"
)

// layouts lists ways to share the work of a small model of 6 layers.
func layouts() []string {
	return []string{
		"tp=2", "cp=2", "pp=2", "pp=2,stage=1,micro=4", "pp=4,stage=1", "tp=2,cp=2,pp=4,stage=3,ranks=2", "ranks=2,zero=0", "ranks=2,zero=1", "ranks=2,zero=2",
		"ranks=4,pp=4,stage=2,micro=6", "ranks=4,zero=2,micro=3", "ranks=4,tp=2,pp=2,zero=1",
	}
}

// TestLayoutsLeaveNothing checks that steps under each layout end with the same bytes live, from the second on.
func TestLayoutsLeaveNothing(t *testing.T) {
	for _, model := range []string{"llama-8b,hidden=512", "mixtral-8x7b,hidden=512", "deepseek-v3,hidden=1024,ffn=1024"} {
		heads := ",heads=16"
		for _, layout := range layouts() {
			for _, letters := range []string{"N", "R", "M", "RM", "O"} {
				spec := model + heads + ",layers=6,vocab=500,batch=2,seq=64," + layout
				ends := liveAtMarks(t, mustWrite(t, spec, letters, Run{Steps: 4}))
				if len(ends) != 4 || slices.Min(ends[1:]) != slices.Max(ends[1:]) {
					t.Errorf("%s %s: live bytes at the ends of steps: %v", spec, letters, ends)
				}
			}
		}
	}
}

// TestStagesShareTheModel adds up the parameters that the GPUs of a pipeline load, whose layers are split, and whose experts are.
func TestStagesShareTheModel(t *testing.T) {
	for _, c := range []struct {
		spec   string
		stages int
		copies int64 // GPUs that split layers, and hold norms and routers each
	}{
		{"llama-70b,seq=64,batch=1,pp=8", 8, 1}, {"llama-70b,seq=64,batch=1,pp=8,tp=8", 8, 8}, {"deepseek-v3,seq=64,batch=1,pp=16,ranks=64,ep=64,zero=3", 16, 64},
		{"mixtral-8x22b,seq=64,batch=1,pp=4,tp=4,ranks=8,ep=8", 4, 32},
	} {
		model, err := shapes.Lookup(strings.Split(c.spec, ",")[0])
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for stage := range c.stages {
			sum += c.copies * loaded(t, fmt.Sprintf("%s,stage=%d", c.spec, stage))
		}
		if want := half * model.Parameters(); sum < want || float64(sum) > 1.01*float64(want) {
			t.Errorf("%s: all GPUs load %d bytes of parameters, want %d and what each holds of norms", c.spec, sum, want)
		}
	}
}

// loaded returns the bytes of parameters that a job loads.
func loaded(t *testing.T, spec string) int64 {
	t.Helper()
	data := mustWrite(t, spec, "R", Run{})
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "trace")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sum := int64(0)
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		if e.Op == trace.OpAlloc && strings.HasSuffix(r.Strings().Text(e.Stack), ".weight") || r.Strings().Text(e.Stack) == "load;embed_tokens" ||
			r.Strings().Text(e.Stack) == "load;lm_head" {
			sum += e.Size
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestExpertsOfOneRank checks that FSDP receives matrices of experts that ranks share, and none of those that one rank has alone.
func TestExpertsOfOneRank(t *testing.T) {
	const model = "mixtral-8x7b,hidden=512,heads=16,layers=2,vocab=500,batch=1,seq=64,"
	const experts, matrix = 4, half * 512 * 14336 // of a rank
	for spec, received := range map[string]bool{"ranks=2,ep=2": false, "ranks=4,ep=2": true} {
		most := int64(0)
		for _, l := range allocated(t, model+spec) {
			if l.stream == streamGather {
				most = max(most, l.size)
			}
		}
		if got := most >= experts*matrix; got != received || most == 0 {
			t.Errorf("%s: at most %d bytes received at a time, of experts of %d", spec, most, experts*matrix)
		}
	}
}

// TestScores checks that GPUs which split layers have all scores of the router each, in single precision.
func TestScores(t *testing.T) {
	const model = "deepseek-v3,hidden=1024,ffn=1024,heads=16,layers=4,vocab=500,batch=1,seq=64,"
	const scores, pairs = single * 64 * 256, 64 * 8
	want := []int64{scores, scores, single * pairs, indexBytes * pairs}
	for _, layout := range []string{"tp=1", "tp=2", "tp=4"} {
		var got []int64
		for _, l := range allocated(t, model+layout) {
			if l.stack == "forward;layer.3;mlp.router" {
				got = append(got, l.size)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the router allocates %v, want %v", layout, got, want)
		}
	}
}

// allocation is what a trace says of one.
type allocation struct {
	size, stream int64
	stack        string
}

// allocated returns the allocations of a step.
func allocated(t *testing.T, spec string) (all []allocation) {
	t.Helper()
	data := mustWrite(t, spec, "N", Run{Steps: 1})
	r, err := trace.NewReader(bytes.NewReader(data), int64(len(data)), "trace")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = trace.Each(r, func(_ int64, e *trace.Event) error {
		if e.Op == trace.OpAlloc {
			all = append(all, allocation{e.Size, e.Stream, r.Strings().Text(e.Stack)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSchedule checks that each microbatch runs forward and then backward once, and how many are under way at most.
func TestSchedule(t *testing.T) {
	for stages := int64(1); stages <= 5; stages++ {
		for stage := range stages {
			for micro := int64(1); micro <= 9; micro++ {
				l := Layout{Stages: stages, Stage: stage, Micro: micro}
				var forward, backward, most int64
				for _, p := range l.schedule() {
					next := &forward
					if p.backward {
						next = &backward
					}
					if p.micro != *next {
						t.Errorf("%+v: pass %+v, want microbatch %d", l, p, *next)
					}
					*next++
					if backward > forward {
						t.Errorf("%+v: backward before forward", l)
					}
					most = max(most, forward-backward)
				}
				if forward != micro || backward != micro || most != min(micro, stages-stage) {
					t.Errorf("%+v: %d forward, %d backward, %d under way", l, forward, backward, most)
				}
			}
		}
	}
}

func TestLayoutFails(t *testing.T) {
	for spec, want := range map[string]string{
		"opt-13b,tp=2":                     "known for Llama, Mixtral and DeepSeek alone",
		"llama-8b,pp=2,stage=2":            "stage 2 of 2: stages count from 0",
		"llama-8b,tp=3":                    "tp=3 does not divide 32 heads",
		"llama-8b,pp=18":                   "32 layers cannot be split into 18 stages",
		"llama-8b,ep=2,ranks=2":            "ep=2 does not divide 0 experts",
		"mixtral-8x7b,ep=4,ranks=2":        "ep=4 does not divide 8 experts and 2 ranks",
		"mixtral-8x7b,ep=2,ranks=2,zero=1": "ep is known with zero=2 and zero=3 alone",
		"llama-8b,tp=8,cp=2,seq=1001":      "split sequences of one length",
		"llama-8b,seq=64/128,cp=2":         "split sequences of one length",
		"llama-8b,zero=4":                  "zero: 4 is not within 0 and 3",
	} {
		if _, err := Parse(spec, Strategy{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
}

// TestOn counts the GPUs of jobs by stages, ranks and parts, and compares the trace of the first part of each with that of the job that names it.
func TestOn(t *testing.T) {
	strategy, err := ParseStrategy("R")
	if err != nil {
		t.Fatal(err)
	}
	parse := func(spec string) *Job {
		t.Helper()
		j, err := Parse("llama-8b,hidden=512,heads=16,layers=6,vocab=500,batch=2,seq=64,"+spec, strategy)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	for _, spec := range []string{"ranks=3", "pp=4", "tp=2,cp=2", "ranks=2,pp=3", "ranks=2,tp=2,cp=2,pp=2", "ranks=4,tp=2,zero=1"} {
		j := parse(spec)
		before, gpu := *j, int64(0)
		for stage := range j.Stages {
			for rank := range j.Ranks {
				for part := range j.Tensor * j.Context {
					on := j.On(gpu)
					gpu++
					if on.Stage != stage || on.Rank != rank || on.part != part {
						t.Errorf("%s: GPU %d is stage %d, rank %d, part %d; want %d, %d, %d", spec, gpu-1, on.Stage, on.Rank, on.part, stage, rank, part)
					}
					named := parse(fmt.Sprintf("%s,stage=%d,rank=%d", spec, stage, rank))
					if part == 0 && !slices.Equal(eventsOf(t, on), eventsOf(t, named)) {
						t.Errorf("%s: GPU %d does other than stage %d of rank %d", spec, gpu-1, stage, rank)
					}
				}
			}
		}
		if gpu != j.GPUs() || !reflect.DeepEqual(*j, before) {
			t.Errorf("%s: %d GPUs, want %d; the job %+v, before %+v", spec, gpu, j.GPUs(), *j, before)
		}
	}
}

func eventsOf(t *testing.T, j *Job) (all []trace.Event) {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	if err := errors.Join(Write(w, j, Run{Seed: 1, Steps: 2}, func(int64, int64) {}), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), "trace")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := trace.Each(r, func(_ int64, e *trace.Event) error { all = append(all, *e); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}
