package tags

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/importer/tracetest"
)

// model is what is known about a training run from other sources than its trace, in bytes; 0 is not compared.
type model struct {
	file                             string
	parameters, gradients, optimizer int64
}

// bundled are runs of testdata: sizes are numbers of parameters, times 4 bytes for float32 and 2 for bfloat16. AdamW keeps two
// numbers for each, SGD with momentum one, SGD without momentum none. Runs with LoRA (L) or on 4 GPUs (fsdp4) have other factors.
var bundled = []model{
	{"snapshots/gpt2.pickle.gz", 4 * distilGPT2, 4 * distilGPT2, 8 * distilGPT2},
	{"snapshots/gpt2-expandable.pickle.gz", 4 * distilGPT2, 4 * distilGPT2, 8 * distilGPT2},
	{"snapshots/gpt2-cut.pickle.gz", 0, 4 * distilGPT2, 8 * distilGPT2},
	{"snapshots/resnet50x.pickle.gz", 4 * 25557032, 4 * 25557032, 0},
	{"resnet152-V.parquet", 4 * 60192808, 4 * 60192808, 4 * 60192808},
	{"opt13b-LRV.parquet", 2 * (opt13B + 26214400), 0, 2 * 2 * 26214400},
	{"opt13b-fsdp4-LRV-r0.parquet", 2 * (opt13B + 26214400) / 4, 0, 2 * 2 * 26214400 / 4},
	{"captures/torchrun-r0.parquet", 2 * train, 2 * train, 4 * train},
	{"captures/oom.parquet", 2 * train, 2 * train, 4 * train},
	{"captures/opt1.3b.parquet", 2 * (train + trainLoRA), 2 * (trainLoRA + trainNorms), 4 * (trainLoRA + trainNorms)},
}

// shared are runs of GM_SHARED.
var shared = []model{
	{"traces/opt1.3b-N.pickle.gz", 2 * opt1B, 2 * opt1B, 4 * opt1B},
	{"traces/opt1.3b-V.pickle.gz", 2 * opt1B, 2 * opt1B, 4 * opt1B},
	{"traces/opt1.3b-LRV.pickle.gz", 2 * (opt1B + 6291456), 0, 4 * 6291456},
	{"traces/opt13b-LRV.pickle.gz", 2 * (opt13B + 26214400), 0, 2 * 2 * 26214400},
	{"traces/neox20b-LR.pickle.gz", 2 * (neoX20B + 34603008), 0, 2 * 2 * 34603008},
	{"traces/neox20b-LRV.pickle.gz", 2 * (neoX20B + 34603008), 0, 2 * 2 * 34603008},
	{"traces/neox20b-fsdp4-LRV-r1.pickle.gz", 2 * (neoX20B + 34603008) / 4, 0, 2 * 2 * 34603008 / 4},
	{"traces/gpt2m-V.pickle.gz", 2 * 354823168, 2 * 354823168, 4 * 354823168},
	{"traces/googlenet-V.pickle.gz", 4 * 13004888, 4 * 13004888, 4 * 13004888},
	{"traces/llama7b8l-RV.pickle.gz", 2 * llama8, 2 * llama8, 4 * llama8},
}

// Numbers of parameters.
const (
	distilGPT2 = 50257*768 + 1024*768 + 6*(12*768*768+13*768) + 2*768
	opt1B      = 50272*2048 + 2050*2048 + 24*(12*2048*2048+13*2048) + 2*2048
	opt13B     = 50272*5120 + 2050*5120 + 40*(12*5120*5120+13*5120) + 2*5120
	neoX20B    = 2*50432*6144 + 44*(12*6144*6144+13*6144) + 2*6144
	llama8     = 2*32000*4096 + 8*(4*4096*4096+3*4096*11008+2*4096) + 4096
	// train is experiments/capture/train.py, trainLoRA what its LoRA adds, trainNorms what is trained beside that.
	train      = 2*50272*2048 + 24*(12*2048*2048+13*2048)
	trainLoRA  = 24 * 8 * (2048 + 3*2048 + 2048 + 2048)
	trainNorms = 24 * 4 * 2048
)

// near reports whether a number of bytes is within 2 % of another.
func near(got, want int64) bool { return max(got-want, want-got)*50 <= want }

func TestModels(t *testing.T) {
	for _, m := range bundled {
		testModel(t, "../../../testdata", m)
	}
	dir := os.Getenv("GM_SHARED")
	if dir == "" {
		t.Skip("GM_SHARED is not set")
	}
	for _, m := range shared {
		testModel(t, dir, m)
	}
}

func testModel(t *testing.T, dir string, m model) {
	t.Run(m.file, func(t *testing.T) {
		most, unknown := mostOf(t, filepath.Join(dir, m.file))
		for tag, want := range map[string]int64{Parameters: m.parameters, Gradients: m.gradients, Optimizer: m.optimizer} {
			if want > 0 && !near(most[tag], want) {
				t.Errorf("%s: %d bytes, want about %d", tag, most[tag], want)
			}
		}
		if unknown > 0.01 && !strings.Contains(m.file, "-cut") {
			t.Errorf("%.1f %% of the bytes allocated are unknown", 100*unknown)
		}
	})
}

// mostOf returns the peak of the live bytes of each tag, and the fraction of the allocated bytes that is unknown.
func mostOf(t *testing.T, path string) (most map[string]int64, unknown float64) {
	t.Helper()
	file := tracetest.Read(t, path)
	labels, err := Derive(open(t, file))
	if err != nil {
		t.Fatal(err)
	}
	sizes, live := map[int64]int64{}, map[string]int64{}
	most = map[string]int64{}
	all, no := int64(0), int64(0)
	err = trace.Each(open(t, file), func(_ int64, e *trace.Event) error {
		if e.Level != trace.LevelFramework {
			return nil
		}
		tag := labels.Of(e.ID).Tag
		switch e.Op {
		case trace.OpAlloc:
			sizes[e.ID] = e.Size
			live[tag] += e.Size
			most[tag] = max(most[tag], live[tag])
			all += e.Size
			if tag == Unknown {
				no += e.Size
			}
		case trace.OpFree, trace.OpFreeCompleted:
			live[tag] -= sizes[e.ID]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return most, float64(no) / float64(all)
}

func open(t testing.TB, file []byte) *trace.Reader { return tracetest.Open(t, file, "test") }

// TestOlder checks a recording without stacks that began during training: sizes identify parameters and the optimizer's state.
func TestOlder(t *testing.T) {
	file := tracetest.Read(t, "../../../testdata/snapshots/gpt2-cut.pickle.gz")
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{})
	r := open(t, file)
	var b trace.Batch
	err := trace.Each(r, func(_ int64, e *trace.Event) error {
		e.Stack, e.Pool, e.Tag = 0, 0, w.Strings().Code(r.Strings().Text(e.Tag))
		b.Append(*e)
		return nil
	})
	if err == nil {
		err = w.Write(&b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	most, _ := mostOf(t, path)
	for tag, want := range map[string]int64{Gradients: 4 * distilGPT2, Optimizer: 8 * distilGPT2} {
		if !near(most[tag], want) {
			t.Errorf("%s: %d bytes, want about %d", tag, most[tag], want)
		}
	}
	// The memory that libraries keep, 65 MiB, and the last batch cannot be distinguished from parameters.
	if got := most[Parameters]; got < 4*distilGPT2 || got > 4*distilGPT2+66<<20 {
		t.Errorf("parameters: %d bytes, want %d and what libraries keep", got, 4*distilGPT2)
	}
}
