package simrd

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gm/internal/swap"
)

// sample is a step of four operators: y = conv(w), v = view(y), relu_(v) and z = mm(v, y); z is left at the end.
const sample = `{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"100"}
{"INSTRUCTION":"CALL","NAME":"convolution","ARGS":["w"],"RESULT":["y"],"TIME":"7"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"10"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
{"INSTRUCTION":"CALL","NAME":"view","ARGS":["y"],"RESULT":["v"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","NAME":"v","MEMORY":"10"}
{"INSTRUCTION":"ALIAS","NAME":"v","ALIAS":"0"}
{"INSTRUCTION":"ANNOTATE","ANNOTATION":"BACKWARD"}
{"INSTRUCTION":"MUTATE","NAME":"relu_","ARGS":["v"],"MUTATE":[0],"TIME":"2"}
{"INSTRUCTION":"COPY","SRC":"v","DST":"c"}
{"INSTRUCTION":"RELEASE","NAME":"v"}
{"INSTRUCTION":"CALL","NAME":"mm","ARGS":["c","y"],"RESULT":["z"],"TIME":"3"}
{"INSTRUCTION":"MEMORY","NAME":"z","MEMORY":"4"}
{"INSTRUCTION":"ALIAS","NAME":"z","ALIAS":"-1"}
{"INSTRUCTION":"RELEASE","NAME":"c"}
{"INSTRUCTION":"RELEASE","NAME":"y"}
`

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader(sample), "sample")
	if err != nil {
		t.Fatal(err)
	}
	want := &swap.Graph{
		Name: "sample", Device: "as logged by DTR", Complete: true, States: []string{"view v"},
		Ops: []swap.Op{
			{Name: "convolution", Type: swap.Conv, Layer: -1, Duration: 7, Base: 100},
			{Name: "view", Layer: -1, Duration: 1, Base: 100, Changes: []int32{0}},
			{Name: "relu_", Type: swap.Activation, Phase: swap.Backward, Layer: -1, Duration: 2, Base: 100, Reads: []int32{0}},
			{Name: "mm", Type: swap.Linear, Phase: swap.Backward, Layer: -1, Duration: 3, Base: 100},
			{Name: "end", Phase: swap.Backward, Layer: -1, Base: 100},
		},
		Tensors: []swap.Tensor{
			{Name: "y", Bytes: 10, Made: 0, Uses: []int32{1, 2, 3}, Layer: -1, Recompute: 7},
			{Name: "v", Bytes: 10, Made: 2, Uses: []int32{3}, Layer: -1, Recompute: 2, From: []int32{0}, Over: []int32{0}},
			{Name: "z", Bytes: 4, Made: 3, Uses: []int32{4}, Layer: -1, Recompute: 3, From: []int32{1, 0}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v, want\n%+v", got, want)
	}
}

func TestErrors(t *testing.T) {
	for line, want := range map[string]string{
		`{`:                      "log x: line 2: unexpected end of JSON input",
		`{"INSTRUCTION":"JUMP"}`: `log x: line 2: unknown instruction "JUMP"`,
		`{"INSTRUCTION":"CALL","NAME":"mm","TIME":"x"}`:                             `log x: line 2: time of operator mm: strconv.ParseInt: parsing "x": invalid syntax`,
		`{"INSTRUCTION":"CALL","NAME":"mm","TIME":"1","ARGS":["q"]}`:                `log x: line 2: operator mm reads "q", which is unknown`,
		`{"INSTRUCTION":"CALL","NAME":"mm","TIME":"-1"}`:                            "log x: operator 0: duration of -1ns",
		`{"INSTRUCTION":"MUTATE","NAME":"mm","TIME":"1","ARGS":["w"],"MUTATE":[1]}`: "log x: line 2: operator mm changes argument 1 of 1",
		`{"INSTRUCTION":"MEMORY","NAME":"q","MEMORY":"1"}`:                          `log x: line 2: memory of "q", which is unknown`,
		`{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"1.5"}`:                        `log x: line 2: memory of w: strconv.ParseInt: parsing "1.5": invalid syntax`,
		`{"INSTRUCTION":"ALIAS","NAME":"w","ALIAS":"-1"}`:                           `log x: line 2: alias of "w", which is no result of the last operator`,
		`{"INSTRUCTION":"ALIAS","NAME":"w","ALIAS":"0"}`:                            `log x: line 2: alias of w: "0" of 0 arguments`,
		`{"INSTRUCTION":"COPY","SRC":"q","DST":"r"}`:                                `log x: line 2: copy of "q", which is unknown`,
		`{"INSTRUCTION":"RELEASE","NAME":"q"}`:                                      `log x: line 2: release of "q", which is unknown`,
	} {
		_, err := Read(strings.NewReader(`{"INSTRUCTION":"CONSTANT","NAME":"w"}`+"\n"+line+"\n"), "x")
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// peaks are those of DTR's logs with frees at the last use, in MiB.
var peaks = map[string]string{
	"resnet32.log.gz": "9595.1", "unet.log.gz": "8020.1", "inceptionv4.log.gz": "10724.2", "tv_densenet121.log.gz": "10509.9", "transformer.log.gz": "8913.8",
	"lstm.log.gz": "4080.9", "treelstm.log.gz": "119.4", "unroll_gan.log.gz": "239.6",
}

// TestLogs reads the logs of DTR's repository, where they are.
func TestLogs(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("GM_SHARED"), "graphs/dtr/*.log.gz"))
	if os.Getenv("GM_SHARED") == "" || len(files) == 0 {
		t.Skip("GM_SHARED names no folder with graphs/dtr")
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Read(z, filepath.Base(file))
		if err != nil {
			t.Error(err)
			continue
		}
		if peak, ok := peaks[g.Name]; ok && fmt.Sprintf("%.1f", float64(slices.Max(g.Plain()))/(1<<20)) != peak {
			t.Errorf("%s: peak of %d bytes, want %s MiB", g.Name, slices.Max(g.Plain()), peak)
		}
	}
}
