package graphs

import (
	"fmt"
	"strings"
	"testing"
)

func TestBuildRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"":                          "expected one of alexnet",
		"bert":                      "expected one of alexnet",
		"gpt-7b,seq":                `"seq" is not of the form`,
		"gpt-7b,seq=":               "is not a number",
		"gpt-7b,seq=64Kib":          "is not a number",
		"gpt-7b,seq=9999999999G":    "is not a number",
		"gpt-7b,seq=0":              "not within 1 and",
		"gpt-7b,seq=1G":             "not within 1 and",
		"gpt-7b,seq=8K,seq=8K":      "given twice",
		"gpt-7b,rows=8":             "expected one of device, seq",
		"gpt-7b,tp=5":               "heads: 32 cannot be split 5 ways",
		"gpt-7b,seq=100,cp=8,tp=1":  "tokens: 100 cannot be split 8 ways",
		"gpt-7b,device=titan-x":     "no GPUs beside it",
		"gpt-7b,device=tpu":         "expected one of titan-x",
		"resnet-50,element=3":       "numbers have 2 or 4 bytes",
		"inception-v4,image=74":     "not within 75",
		"gpt-65b,batch=4K,seq=16Mi": "operator",
	} {
		if _, err := Build(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
}

// TestExtremes builds each network with each parameter at either end. A transformer may say that its GPUs cannot share it.
func TestExtremes(t *testing.T) {
	for _, e := range Entries() {
		for _, p := range e.Parameters {
			for _, n := range []int64{p.Least, p.Most} {
				_, err := Build(fmt.Sprintf("%s,%s=%d", e.Name, p.Name, n))
				if err != nil && !strings.Contains(err.Error(), "cannot be split") {
					t.Error(err)
				}
			}
		}
	}
}

func FuzzBuild(f *testing.F) {
	for _, e := range Entries() {
		f.Add(e.Name)
	}
	f.Add("gpt-7b,seq=64Ki,batch=2,tp=4,cp=2,device=h200")
	f.Add("resnet-50,image=33,norm=0,element=2,workspace=1Gi")
	f.Fuzz(func(t *testing.T, spec string) {
		if strings.Contains(spec, "layers=") {
			return // a thousand take their time
		}
		if m, err := Build(spec); err == nil && len(m.Graph.Tensors) == 0 {
			t.Error("no tensors")
		}
	})
}
