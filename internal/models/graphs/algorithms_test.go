package graphs

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/swap"
)

// measured is a table of algorithms: of each pass of AlexNet's convolutions with two images one without a workspace, a better one, and one
// that is worse than that in both.
func measured(t *testing.T, m *Model) string {
	t.Helper()
	text := "# some GPU, cuDNN 9\nbatch,channels,height,width,filters,kernel_height,kernel_width,stride,pad_height,pad_width,groups,dtype,pass,algorithm,workspace_bytes,ms\n"
	for _, c := range m.Convolutions {
		for i, name := range c.Passes {
			for _, way := range []string{"bare,0,4", fmt.Sprintf("fast,%d,1.5", 100*(i+1)), "worse,300,2"} {
				text += fmt.Sprintf("%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,fp32,%s,%s\n", c.Batch, c.Channels, c.Height, c.Width, c.Filters,
					c.KernelHeight, c.KernelWidth, c.Stride, c.PadHeight, c.PadWidth, c.Groups, name, way)
			}
		}
	}
	return text
}

// TestOffer has the ways of one pass, of two, and of a first layer, whose backward pass computes no gradient of the image.
func TestOffer(t *testing.T) {
	m := mustBuild(t, "alexnet,batch=2,workspace=0")
	before := slices.Clone(m.Graph.Ops)
	a, err := ReadAlgorithms(strings.NewReader(measured(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Offer(a, "fp32"); err != nil {
		t.Fatal(err)
	}
	if err := m.Graph.Validate(); err != nil {
		t.Fatal(err)
	}
	fast := swap.Option{Name: "fast", Workspace: 100, Duration: 1500 * time.Microsecond}
	for name, want := range map[string]struct {
		alone   time.Duration
		options []swap.Option
	}{
		"conv1":          {4 * time.Millisecond, []swap.Option{fast}},
		"conv1.backward": {4 * time.Millisecond, []swap.Option{fast}},
		"conv5.backward": {8 * time.Millisecond, []swap.Option{{Name: "fast+bare", Workspace: 100, Duration: 5500 * time.Microsecond},
			{Name: "fast+fast", Workspace: 200, Duration: 3 * time.Millisecond}}},
	} {
		i := slices.IndexFunc(m.Graph.Ops, func(o swap.Op) bool { return o.Name == name })
		o := m.Graph.Ops[i]
		if o.Duration != want.alone || !slices.Equal(o.Options, want.options) || o.Base != before[i].Base {
			t.Errorf("%s: %v, %d bytes more, options %+v", name, o.Duration, o.Base-before[i].Base, o.Options)
		}
	}
	for i, o := range m.Graph.Ops {
		if o.Type != swap.Conv && (o.Duration != before[i].Duration || o.Options != nil) {
			t.Errorf("%s has changed", o.Name)
		}
	}
	if a.Source != "some GPU, cuDNN 9" {
		t.Errorf("the source is %q", a.Source)
	}
}

// TestOfferLeast has no algorithm without a workspace: the least belongs to what the operator takes.
func TestOfferLeast(t *testing.T) {
	m := mustBuild(t, "alexnet,batch=2,workspace=0")
	before := m.Graph.Ops[0].Base
	a, err := ReadAlgorithms(strings.NewReader(strings.ReplaceAll(measured(t, m), "bare,0,", "bare,7,")))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Offer(a, "fp32"); err != nil {
		t.Fatal(err)
	}
	if o := m.Graph.Ops[0]; o.Base != before+7 || len(o.Options) != 1 || o.Options[0].Workspace != 93 {
		t.Errorf("%d bytes more, options %+v", o.Base-before, o.Options)
	}
}

// TestOfferMissing has a table of another arithmetic and of another batch.
func TestOfferMissing(t *testing.T) {
	m := mustBuild(t, "alexnet,batch=2,workspace=0")
	a, err := ReadAlgorithms(strings.NewReader(measured(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Offer(a, "tf32"); err == nil || !strings.Contains(err.Error(), "conv1: no algorithm was measured in tf32") {
		t.Errorf("tf32: %v", err)
	}
	if err := mustBuild(t, "alexnet,batch=4,workspace=0").Offer(a, "fp32"); err == nil || !strings.Contains(err.Error(), "conv1: no algorithm") {
		t.Errorf("another batch: %v", err)
	}
}

// TestReadAlgorithmsErrors has tables that are none.
func TestReadAlgorithmsErrors(t *testing.T) {
	good := measured(t, mustBuild(t, "alexnet,batch=2"))
	for want, table := range map[string]string{
		"first line is no comment": strings.TrimPrefix(good, "# "),
		"titles":                   "# some GPU\n",
		"no column pass":           strings.Replace(good, "pass,", "pas,", 1),
		`line 3: batch: "x"`:       strings.Replace(good, "\n2,", "\nx,", 1),
		`line 3: "0" milliseconds`: strings.Replace(good, "bare,0,4", "bare,0,0", 1),
		`"NaN" milliseconds`:       strings.Replace(good, "bare,0,4", "bare,0,NaN", 1),
		`workspace_bytes: "-1"`:    strings.Replace(good, "bare,0,4", "bare,-1,4", 1),
		"wrong number of fields":   strings.Replace(good, "bare,0,4", "bare,0", 1),
	} {
		if _, err := ReadAlgorithms(strings.NewReader(table)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestMeasuredAlgorithms has what was measured on an H200: all convolutions of the networks of experiments/workspaces/networks.py, and no others.
func TestMeasuredAlgorithms(t *testing.T) {
	file, err := os.Open("../../../experiments/workspaces/results/cudnn-h200.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	a, err := ReadAlgorithms(file)
	if err != nil {
		t.Fatal(err)
	}
	unused := maps.Clone(a.of)
	for _, arithmetic := range []string{"fp32", "tf32"} {
		for _, spec := range []string{
			"alexnet,batch=256", "vgg-16,batch=64", "vgg-16,batch=128", "vgg-16,batch=256", "resnet-50,batch=100", "resnet-101,batch=100",
			"resnet-152,batch=100", "inception-v4,batch=128",
		} {
			m := mustBuild(t, spec+",workspace=0,device=h200")
			if err := m.Offer(a, arithmetic); err != nil {
				t.Fatal(err)
			}
			if err := m.Graph.Validate(); err != nil {
				t.Errorf("%s: %v", spec, err)
			}
			for _, c := range m.Convolutions {
				for _, name := range c.Passes {
					delete(unused, pass{c.Convolution, arithmetic, name})
				}
				for i, o := range m.Graph.Ops[c.Op].Options {
					before := swap.Option{Duration: m.Graph.Ops[c.Op].Duration}
					if i > 0 {
						before = m.Graph.Ops[c.Op].Options[i-1]
					}
					if o.Workspace <= before.Workspace || o.Duration >= before.Duration {
						t.Errorf("%s: %s: %+v comes behind %+v", spec, m.Graph.Ops[c.Op].Name, o, before)
					}
				}
			}
		}
	}
	if len(unused) > 0 {
		t.Errorf("%d measured passes belong to no network", len(unused))
	}
}

// TestConvolutions counts the arithmetic of networks from their convolutions, and the weights of their linear layers.
func TestConvolutions(t *testing.T) {
	for spec, want := range map[string]struct {
		convolutions int
		linear       float64
	}{
		"alexnet": {5, 9216*4096 + 4096*4096 + 4096*1000}, "vgg-16": {13, 25088*4096 + 4096*4096 + 4096*1000},
		"resnet-50": {53, 2048 * 1000}, "resnet-152": {155, 2048 * 1000}, "inception-v4": {149, 1536 * 1000},
	} {
		const batch = 3
		m := mustBuild(t, fmt.Sprintf("%s,batch=%d", spec, batch))
		flops, passes := 3*2*batch*want.linear, 0
		for _, c := range m.Convolutions {
			if o := m.Graph.Ops[c.Op]; o.Type != swap.Conv || (o.Phase == swap.Forward) != slices.Equal(c.Passes, []string{"forward"}) {
				t.Errorf("%s: operator %s computes %v", spec, o.Name, c.Passes)
			}
			height := (c.Height+2*c.PadHeight-c.KernelHeight)/c.Stride + 1
			width := (c.Width+2*c.PadWidth-c.KernelWidth)/c.Stride + 1
			products := c.Batch * c.Filters * height * width * c.Channels / c.Groups * c.KernelHeight * c.KernelWidth
			flops += 2 * float64(products) * float64(len(c.Passes))
			passes += len(c.Passes)
		}
		if passes != 3*want.convolutions-1 {
			t.Errorf("%s: %d passes, want three of %d convolutions, less the gradient of the image", spec, passes, want.convolutions)
		}
		if math.Abs(flops-m.FLOPs) > 1e-9*m.FLOPs {
			t.Errorf("%s: %g FLOPs, want %g", spec, flops, m.FLOPs)
		}
	}
}
