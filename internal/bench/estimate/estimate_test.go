package estimate

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/internal/bench/fit"
	"gm/internal/cuda"
	"gm/internal/models/shapes"
	"gm/internal/models/synth"
)

// mustEstimate estimates a job.
func mustEstimate(t *testing.T, model shapes.Transformer, fields, letters string) *Estimate {
	t.Helper()
	strategy, err := synth.ParseStrategy(letters)
	if err != nil {
		t.Fatal(err)
	}
	job, err := synth.New(model, strings.Split(fields, ","), strategy)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Of(context.Background(), job, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustLookup(t *testing.T, name string) shapes.Transformer {
	t.Helper()
	m, err := shapes.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRecordedPeaks holds estimates from configurations against what PyTorch recorded: the longest step of the recorded job, or all of them
// where the longest came before the optimizer had states.
func TestRecordedPeaks(t *testing.T) {
	for _, c := range []struct {
		name, config, fields, letters string
		peak                          int64
	}{
		{"opt1.3b-N", `{"model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24, "num_attention_heads": 32, "vocab_size": 50272,
			"max_position_embeddings": 2048, "word_embed_proj_dim": 2048}`, "batch=32,seq=768", "N", 54482321800},
		{"opt13b-LRV", `{"model_type": "opt", "hidden_size": 5120, "ffn_dim": 20480, "num_hidden_layers": 40, "num_attention_heads": 40, "vocab_size": 50272,
			"max_position_embeddings": 2048}`, "batch=16,seq=965", "LR", 41888640904},
		{"opt13b-fsdp4-LRV-r0", `{"model_type": "opt", "hidden_size": 5120, "ffn_dim": 20480, "num_hidden_layers": 40, "num_attention_heads": 40,
			"vocab_size": 50272, "max_position_embeddings": 2048}`, "batch=16,seq=869,ranks=4", "LR", 22069625736},
		{"neox20b-LR", `{"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 44, "num_attention_heads": 64,
			"vocab_size": 50432, "rotary_pct": 0.25, "tie_word_embeddings": false}`, "batch=12,seq=1Ki", "LR", 55617536104},
		{"gpt2m-V", `{"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024, "n_inner": null, "vocab_size": 50257}`,
			"batch=16,seq=954", "N", 33267709144},
		{"llama7b8l-RV", `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 8, "num_attention_heads": 32,
			"vocab_size": 32000, "tie_word_embeddings": false}`, "batch=1,seq=61651/40425/33258/38708/35056", "R", 33563307140},
		// experiments/programs/results/programs.csv, whose longest step is the tenth. The stream between its layers is in single precision.
		{"moe", `{"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8, "num_attention_heads": 16,
			"num_key_value_heads": 4, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2}`, "batch=6,seq=1511", "M", 21324235264},
	} {
		m, err := shapes.ReadConfig(strings.NewReader(c.config), c.name)
		if err != nil {
			t.Fatal(err)
		}
		got := mustEstimate(t, m, c.fields, c.letters).Stages[0].Live
		t.Logf("%s: %d, recorded %d: %+.2f %%", c.name, got, c.peak, 100*(float64(got)/float64(c.peak)-1))
		if math.Abs(float64(got)/float64(c.peak)-1) > 0.03 {
			t.Errorf("%s: peak of %d bytes, recorded %d", c.name, got, c.peak)
		}
	}
}

// recordedConfig is the model of testdata/parallel.
const recordedConfig = `{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 8, "num_attention_heads": 16,
	"num_key_value_heads": 16, "vocab_size": 32000, "tie_word_embeddings": false}`

func recordedModel(t *testing.T) shapes.Transformer {
	t.Helper()
	m, err := shapes.ReadConfig(strings.NewReader(recordedConfig), "config")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRecordedLayouts holds estimates against ranks of jobs that were recorded on two GPUs (testdata/parallel): in parts by matrices, by tokens, by
// layers, and by parameters alone.
func TestRecordedLayouts(t *testing.T) {
	m := recordedModel(t)
	for _, c := range []struct {
		fields string
		stage  int
		peak   int64
	}{
		{"batch=2,seq=4Ki,tp=2", 0, 7235048084},
		{"batch=2,seq=4Ki,cp=2", 0, 6820588176},
		{"batch=2,seq=4Ki,cp=2", 0, 6686370448},
		{"batch=1,seq=4Ki,micro=4,pp=2", 0, 5522489984},
		{"batch=1,seq=4Ki,micro=4,pp=2", 1, 6555239004},
		{"batch=2,seq=4Ki,ranks=2", 0, 11416677008},
	} {
		got := mustEstimate(t, m, c.fields, "N").Stages[c.stage].Live
		if math.Abs(float64(got)/float64(c.peak)-1) > 0.02 {
			t.Errorf("%s, stage %d: peak of %d bytes, recorded %d", c.fields, c.stage, got, c.peak)
		}
	}
}

// TestRecordedKinds holds estimates against the recordings of further kinds of experiments/fleet/parallel.sh, of each rank that is in testdata/parallel.
func TestRecordedKinds(t *testing.T) {
	const most = 0.03 // by which an estimate may be off
	for _, c := range []struct{ kind, config, fields string }{
		{"gqa", "gqa", "batch=2,seq=4Ki,tp=2"},
		{"moe", "mixtral", "batch=2,seq=4Ki,ranks=2,ep=2"},
		{"moe-scores", "mixtral", "batch=2,seq=4Ki,ranks=2,ep=2"},
		{"mla", "deepseek", "batch=2,seq=4Ki,ranks=2,ep=2"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			stage := mustEstimate(t, mustConfigure(t, "config-"+c.config), c.fields, "N").Stages[0]
			got := stage.Live
			files, err := filepath.Glob("../../../testdata/parallel/" + c.kind + "-r[0-9]*.parquet")
			if err != nil {
				t.Fatal(err)
			}
			if len(files) == 0 {
				t.Fatal("there is no recording")
			}
			for _, file := range files {
				peak := mustOverview(t, file).Devices[0].PeakLive
				off := float64(got)/float64(peak) - 1
				t.Logf("%s: %d, recorded %d: %+.2f %%; outside %+v, recorded %+v", filepath.Base(file), got, peak, 100*off, stage.Outside, recordedOutside(t, file))
				if math.Abs(off) > most {
					t.Errorf("%s: peak of %d bytes, recorded %d", filepath.Base(file), got, peak)
				}
			}
		})
	}
}

// mustConfigure reads a configuration of experiments/fleet.
func mustConfigure(t *testing.T, name string) shapes.Transformer {
	t.Helper()
	f, err := os.Open("../../../experiments/fleet/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := shapes.ReadConfig(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOperators checks that what a configuration says of operators is what they save for the backward pass.
func TestOperators(t *testing.T) {
	const (
		layers, tokens, columns = 2, 2 << 10, 64
		neoX                    = `{"model_type": "gpt_neox", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 4,
			"vocab_size": 50000, "hidden_act": "gelu"}`
		llama = `{"model_type": "qwen2", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 64,
			"vocab_size": 50000}`
	)
	for _, c := range []struct {
		config, from, to string
		saved            int64 // bytes more
	}{
		{neoX, `"gelu"`, `"gelu_fast"`, layers * tokens * 6 * 1024 * 2},
		// Of queries and keys: a copy in single precision and one in half, and a root of each head.
		{llama, "qwen2", "qwen3", layers * 2 * tokens * 4 * (columns*(4+2) + 4)},
	} {
		live := func(text string) int64 {
			m, err := shapes.ReadConfig(strings.NewReader(text), "c")
			if err != nil {
				t.Fatal(err)
			}
			return mustEstimate(t, m, "batch=1,seq=2Ki", "N").Stages[0].Parts[3].Bytes
		}
		before, after := live(c.config), live(strings.Replace(c.config, c.from, c.to, 1))
		if after-before != c.saved {
			t.Errorf("%s for %s: %d bytes of activations more, want %d", c.to, c.from, after-before, c.saved)
		}
	}
}

// TestLeftFree checks that a job whose layers are split gets a card with a fifth to spare, and others one that they fill.
func TestLeftFree(t *testing.T) {
	for fields, free := range map[string]float64{"tp=2": 0.2, "pp=2": 0.2, "cp=2": 0, "ranks=2": 0} {
		e := mustEstimate(t, mustLookup(t, "llama-8b"), "layers=2,batch=1,seq=64,"+fields, "N")
		need := e.Settings[0].Reserved
		whole := (int64(float64(need)/(1-free))+1+cuda.Granularity)/cuda.Granularity*cuda.Granularity + e.Outside
		if e.Free != free || e.On(fit.Card{Capacity: whole}) == nil {
			t.Errorf("%s: %v are left free; %d bytes do not fit into %d", fields, e.Free, need, whole)
		}
		for _, s := range e.Settings {
			need = min(need, s.Reserved)
		}
		if small := int64(float64(need)/(1-free)) - 2 + e.Outside; e.On(fit.Card{Capacity: small}) != nil {
			t.Errorf("%s: %d bytes fit into %d", fields, need, small)
		}
	}
}

// TestPartsAddUp checks that parts are all that is live, that each allocator reserves at least that, and which card is chosen.
func TestPartsAddUp(t *testing.T) {
	e := mustEstimate(t, mustLookup(t, "mixtral-8x7b"), "layers=6,batch=1,seq=1Ki,pp=2,tp=2,ranks=2,ep=2,micro=3", "RM")
	if e.GPUs != 8 || len(e.Stages) != 2 {
		t.Fatalf("%d GPUs, %d stages", e.GPUs, len(e.Stages))
	}
	for _, s := range e.Stages {
		sum := int64(0)
		for _, p := range s.Parts {
			sum += p.Bytes
		}
		if sum != s.Live {
			t.Errorf("stage %d: parts of %d bytes, live are %d", s.Stage, sum, s.Live)
		}
		for i, n := range s.Reserved {
			if n < s.Live {
				t.Errorf("stage %d: %s reserves %d, live are %d", s.Stage, Settings()[i], n, s.Live)
			}
		}
	}
	best := e.Best()
	for _, card := range fit.Cards() {
		if card.Capacity < best.Card.Capacity && e.On(card) != nil {
			t.Errorf("fits on %s, which is smaller than %s", card.Name, best.Card.Name)
		}
	}
	if on := e.On(*best.Card); on == nil || on.Allocator != best.Allocator {
		t.Errorf("best is %+v, on its card %+v", best, on)
	}
}
