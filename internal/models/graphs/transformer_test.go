package graphs

import (
	"testing"
	"time"

	"gm/internal/swap"
)

// TestSkeletal adds up what a layer of each of MEMO's models saves: 16bsh numbers of two bytes (section 3.2), 1/16 of them the input and as much
// the output of attention, 4096 GiB for the 7B at a million tokens.
func TestSkeletal(t *testing.T) {
	for spec, hidden := range map[string]int64{
		"gpt-7b,tp=4": 4096, "gpt-13b": 5120, "gpt-30b": 7168, "gpt-65b": 8192,
	} {
		m := mustBuild(t, spec+",seq=64Ki,batch=2,cp=2")
		sums := map[int32]map[swap.Role]int64{}
		for _, x := range m.Graph.Tensors {
			if sums[x.Layer] == nil {
				sums[x.Layer] = map[swap.Role]int64{}
			}
			sums[x.Layer][x.Role] += x.Bytes * m.GPUs
		}
		delete(sums, -1)
		unit := 2 * 2 * 64 << 10 * hidden
		for layer, of := range sums {
			if of[swap.LayerInput] != unit || of[swap.AttentionOut] != unit || of[swap.Inner] != 14*unit {
				t.Fatalf("%s: layer %d saves %v, want %d of each role and 14 of the rest", spec, layer, of, unit)
			}
		}
	}
	var sum int64
	million := mustBuild(t, "gpt-7b,seq=1Mi")
	for _, x := range million.Graph.Tensors {
		if x.Layer >= 0 {
			sum += x.Bytes * million.GPUs
		}
	}
	if sum != 4096<<30 {
		t.Errorf("7B at a million tokens saves %d bytes", sum)
	}
}

// TestTGS turns tokens per GPU and second of MEMO's table 3 into the MFU beside them: 6sP + 6nhs^2 with this count of parameters.
func TestTGS(t *testing.T) {
	for _, row := range []struct {
		spec string
		gpus int64
		seq  int64
		tgs  float64
		mfu  float64
	}{
		{"gpt-7b,seq=4K", 8, 4 << 10, 3578.86, 0.4945},
		{"gpt-7b,seq=64K", 8, 64 << 10, 1786.22, 0.5234},
		{"gpt-7b,seq=512K", 8, 512 << 10, 357.70, 0.5184},
		{"gpt-7b,seq=1024K", 8, 1024 << 10, 188.73, 0.5230},
		{"gpt-13b,seq=64K,cp=2", 16, 64 << 10, 1042.50, 0.5265},
		{"gpt-30b,seq=64K,cp=4", 32, 64 << 10, 516.16, 0.5212},
		{"gpt-65b,seq=64K,cp=8", 64, 64 << 10, 230.62, 0.4780},
	} {
		m := mustBuild(t, row.spec)
		step := float64(row.seq) / (row.tgs * float64(row.gpus))
		if got := m.MFU(time.Duration(step * float64(time.Second))); m.GPUs != row.gpus || !near(got, row.mfu, 0.001) {
			t.Errorf("%s on %d: MFU %.4f, want %.4f", row.spec, m.GPUs, got, row.mfu)
		}
	}
}

// TestLlama holds parameters against those published, and time against a step measured on an H200: 8 layers of the 7B on 65,536 tokens take
// 3.20 s, and computing the forward pass again 0.84 s more.
func TestLlama(t *testing.T) {
	if m := mustBuild(t, "llama-7b"); m.Parameters != 6_738_415_616 {
		t.Errorf("7B has %d parameters", m.Parameters)
	}
	if m := mustBuild(t, "llama-8b"); m.Parameters != 8_030_261_248 {
		t.Errorf("8B has %d parameters", m.Parameters)
	}
	m := mustBuild(t, "llama-7b,layers=8,seq=64Ki")
	var forward time.Duration
	for _, o := range m.Graph.Ops {
		if o.Phase == swap.Forward {
			forward += o.Duration
		}
	}
	if got := m.Graph.Compute().Seconds(); !near(got, 3.20, 0.1) || !near(forward.Seconds(), 0.84, 0.1) {
		t.Errorf("a step takes %.2f s, its forward pass %v", got, forward)
	}
	var saved int64
	for _, x := range mustBuild(t, "llama-8b,layers=1,seq=1K").Graph.Tensors {
		if x.Layer >= 0 {
			saved += x.Bytes
		}
	}
	// 2(6h + 2h/4 + 4 x 14336) and 4 bytes for each of 32 heads.
	if perToken := saved >> 10; perToken != 2*(6*4096+2*1024+4*14336)+4*32 {
		t.Errorf("a layer of the 8B saves %d bytes for each token", perToken)
	}
}

// TestRecompute checks that all but the input of a layer can be recomputed, from what is made before it.
func TestRecompute(t *testing.T) {
	for _, spec := range []string{"gpt-7b", "llama-8b"} {
		m := mustBuild(t, spec)
		for i := range m.Graph.Tensors {
			x := &m.Graph.Tensors[i]
			if can := x.Recompute > 0 && len(x.From) > 0; x.Layer >= 0 && can != (x.Role != swap.LayerInput) {
				t.Errorf("%s: %s takes %v from %v", spec, x.Name, x.Recompute, x.From)
			}
		}
	}
}
