package graphs

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gm/internal/swap"
)

func mustBuild(t *testing.T, spec string) *Model {
	t.Helper()
	m, err := Build(spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// near reports whether a number is within a part of what is expected.
func near(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

// TestPublished holds parameters and multiplications of an image against those that are published: Caffe's AlexNet (BVLC), torchvision's VGG-16 and
// ResNets (of which fb.resnet.torch is the model), Szegedy et al. through pretrained-models.pytorch for Inception-v4, He et al. for ResNet-32.
func TestPublished(t *testing.T) {
	for spec, want := range map[string]struct {
		parameters int64
		products   float64 // of one image forward, in 10^9
		steps      int     // forward
	}{
		"alexnet":      {60_965_224, 0.724, 23},
		"vgg-16":       {138_357_544, 15.47, 39},
		"resnet-32":    {466_906, 0.0693, 0},
		"resnet-50":    {25_557_032, 4.09, 0},
		"resnet-101":   {44_549_160, 7.80, 0},
		"resnet-152":   {60_192_808, 11.51, 0},
		"inception-v4": {42_679_816, 12.27, 0},
	} {
		m := mustBuild(t, spec+",batch=1")
		if m.Parameters != want.parameters {
			t.Errorf("%s: %d parameters, want %d", spec, m.Parameters, want.parameters)
		}
		// A step is three forward passes less the gradient of the image, a twentieth at most.
		if products := m.FLOPs / 6 / 1e9; !near(products, want.products, 0.05) {
			t.Errorf("%s: %.4g 10^9 products, want %.4g", spec, products, want.products)
		}
		if steps := (len(m.Graph.Ops) - 1) / 2; want.steps > 0 && steps != want.steps {
			t.Errorf("%s: %d layers, want %d", spec, steps, want.steps)
		}
	}
}

// TestMeasured holds steps against github.com/jcjohnson/cnn-benchmarks: milliseconds of a forward and backward pass of 16 images on a TITAN X
// with cuDNN 5. The rates of a device are the same for all networks, so none is met exactly.
func TestMeasured(t *testing.T) {
	for spec, want := range map[string]float64{
		"alexnet,batch=16": 23.71, "vgg-16,batch=16": 262.42, "resnet-50,batch=16": 171.02, "resnet-101,batch=16": 260.12, "resnet-152,batch=16": 366.97,
	} {
		if got := mustBuild(t, spec).Graph.Compute().Seconds() * 1000; !near(got, want, 0.15) {
			t.Errorf("%s: %.1f ms, want %.1f", spec, got, want)
		}
	}
}

func TestGraphsAreValid(t *testing.T) {
	for _, e := range Entries() {
		m := mustBuild(t, e.Name)
		peak := slices.Max(m.Graph.Plain())
		if peak < m.Graph.Ops[0].Base || peak > 1<<40 {
			t.Errorf("%s: a peak of %d bytes", e.Name, peak)
		}
		for i := range m.Graph.Tensors {
			if last := m.Graph.Ops[m.Graph.Tensors[i].Last()]; last.Phase == swap.Update {
				t.Errorf("%s: tensor %d is read by the update", e.Name, i)
			}
		}
	}
}

// TestDFS holds the order of an Inception block against Dymem's figure 10: each branch to its end, the join after the last.
func TestDFS(t *testing.T) {
	m := mustBuild(t, "inception-v4,norm=0")
	var names []string
	for _, o := range m.Graph.Ops {
		if strings.HasPrefix(o.Name, "a1") && o.Phase == swap.Forward && o.Type != swap.Activation {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(o.Name, "a1."), ".conv"))
		}
	}
	if got, want := strings.Join(names, " "), "1.0 2.0 2.1 3.0 3.1 3.2 pool 4.0 a1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	input := slices.IndexFunc(m.Graph.Tensors, func(t swap.Tensor) bool { return t.Name == "stem.3" })
	forward := slices.DeleteFunc(slices.Clone(m.Graph.Tensors[input].Uses), func(op int32) bool { return m.Graph.Ops[op].Phase != swap.Forward })
	if len(forward) != 4 {
		t.Errorf("the input of a block with four branches is read by %d operators", len(forward))
	}
}

// TestBackwardReads holds what backward passes read against cuDNN's calls.
func TestBackwardReads(t *testing.T) {
	m := mustBuild(t, "alexnet")
	uses := map[string]string{}
	for i := range m.Graph.Tensors {
		var names []string
		for _, op := range m.Graph.Tensors[i].Uses {
			names = append(names, m.Graph.Ops[op].Name)
		}
		uses[m.Graph.Tensors[i].Name] = strings.Join(names, " ")
	}
	for tensor, want := range map[string]string{
		"images":     "conv1 conv1.backward",
		"conv1":      "relu1",
		"relu1":      "norm1 norm1.backward relu1.backward",
		"norm1":      "pool1 pool1.backward norm1.backward",
		"pool1":      "conv2 conv2.backward pool1.backward",
		"fc6":        "relu6",
		"relu6":      "drop6 relu6.backward",
		"drop6":      "fc7 fc7.backward",
		"drop6.mask": "drop6.backward",
		"softmax":    "softmax.backward",
	} {
		if uses[tensor] != want {
			t.Errorf("%s is read by %q, want %q", tensor, uses[tensor], want)
		}
	}
}

// TestBase checks that Base is the state, the gradients that live, and the workspaces of convolutions.
func TestBase(t *testing.T) {
	const workspace = 3 // of no activation's size
	m := mustBuild(t, "resnet-50,batch=2,workspace=3")
	spaces := 0
	for _, l := range m.Temporaries {
		if l.Bytes == workspace {
			spaces++
		}
	}
	if spaces != 2*53 {
		t.Errorf("%d workspaces", spaces)
	}
	for op := range m.Graph.Ops {
		want := states * 4 * m.Parameters
		for _, l := range m.Temporaries {
			if l.Made <= int32(op) && int32(op) <= l.Last {
				want += l.Bytes
			}
		}
		if got := m.Graph.Ops[op].Base; got != want {
			t.Fatalf("operator %d: %d bytes, want %d", op, got, want)
		}
	}
}

// TestDymemPeak holds the least that a step of Inception-v4 takes, one operator's tensors at a time, against the 2527 MB to which Dymem
// gets it (section 5.1): no schedule takes less than its worst operator.
func TestDymemPeak(t *testing.T) {
	m := mustBuild(t, "inception-v4,batch=128,norm=0")
	g := m.Graph
	held := make([]int64, len(g.Ops))
	for op := range g.Ops {
		held[op] = g.Ops[op].Base
	}
	for i := range g.Tensors {
		x := &g.Tensors[i]
		held[x.Made] += x.Bytes
		for _, op := range x.Uses {
			if op != x.Made {
				held[op] += x.Bytes
			}
		}
	}
	if least := float64(slices.Max(held)) / (1 << 20); !near(least, 2527, 0.03) {
		t.Errorf("the worst operator holds %.0f MiB", least)
	}
}
