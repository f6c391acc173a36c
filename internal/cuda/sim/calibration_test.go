package sim

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gm/internal/cuda/cards"
)

// TestH200 looks for calls without a cost, and for costs of no call.
func TestH200(t *testing.T) {
	for call, curve := range H200() {
		if err := curve.check(); err != nil {
			t.Errorf("%s: %v", Call(call), err)
		}
	}
	for name := range cards.H200().Calls {
		if _, known := callByName(name); !known {
			t.Errorf("%s is no call", name)
		}
	}
}

func TestCalibrationRoundTrip(t *testing.T) {
	want := Calibration{Device: "NVIDIA H200", Driver: "580.159.03", CUDA: "13.0", Costs: H200()}
	var text bytes.Buffer
	must(t)(want.Write(&text))
	path := filepath.Join(t.TempDir(), "costs.json")
	must(t)(os.WriteFile(path, text.Bytes(), 0o666))
	got, err := ReadCalibration(path)
	must(t)(err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if alloc, last := strings.Index(text.String(), "cuMemAlloc"), strings.Index(text.String(), "cuStreamWaitEvent"); alloc > last {
		t.Error("the calls are not in their order")
	}
}

// TestCalibrationWithoutClearing reads a file from before clearing was measured by itself.
func TestCalibrationWithoutClearing(t *testing.T) {
	want := H200()
	want[Clear] = nil
	var text bytes.Buffer
	must(t)(Calibration{Costs: want}.Write(&text))
	if strings.Contains(text.String(), "clearing") {
		t.Error("an empty curve is written")
	}
	got, err := readCalibration(&text)
	must(t)(err)
	if !reflect.DeepEqual(got.Costs, want) {
		t.Errorf("read %+v, want %+v", got.Costs, want)
	}
}

func TestCalibrationRefused(t *testing.T) {
	var good bytes.Buffer
	must(t)(Calibration{Costs: H200()}.Write(&good))
	compact := strings.Join(strings.Fields(good.String()), "")
	for _, test := range []struct{ old, new, want string }{
		{compact, "", "unexpected end of JSON input"},
		{compact, "[]", "a list, expected an object"},
		{compact, `{"device":"x"}`, "no costs: gmbench calibrate writes them"},
		{compact, `{"costs":null}`, "no costs"},
		{compact, strings.Repeat(" ", maxCalibration+1), "more than 1048576 bytes"},
		{`"cuMemMap"`, `"cuMemCopy"`, `"cuMemCopy" is none of the calls that have a cost`},
		{`"cuEventQuery":[{"bytes":0,"ns":1300}],`, "", "cuEventQuery: no cost"},
		{`[{"bytes":0,"ns":1300}]`, "[]", "cuEventQuery: no cost"},
		{`"ns":1300`, `"ns":-1300`, "cuEventQuery: point 1: a cost of -1300 ns is not within 0 and a minute"},
		{`"ns":1300`, `"ns":60000000001`, "cuEventQuery: point 1: a cost of 60000000001 ns"},
		{`"ns":1300`, `"ns":1e30`, "ns: 1e30, expected a whole number of 64 bits"},
		{`"bytes":134217728,"ns":43000`, `"bytes":2097152,"ns":43000`, "cuMemAlloc: point 2: 2097152 bytes after 2097152, sizes must grow"},
		{`"clearing":[{"bytes":2097152,`, `"clearing":[{"bytes":-1,`, "clearing: point 1: -1 bytes"},
		{`"bytes":0,"ns":1300`, `"bytes":-1,"ns":1300`, "cuEventQuery: point 1: -1 bytes"},
	} {
		text := strings.Replace(compact, test.old, test.new, 1)
		if text == compact {
			t.Fatalf("%s is not in the text", test.old)
		}
		path := filepath.Join(t.TempDir(), "costs.json")
		must(t)(os.WriteFile(path, []byte(text), 0o666))
		_, err := ReadCalibration(path)
		if err == nil || !strings.HasPrefix(err.Error(), "costs "+path+": ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: %v, want %s", test.new, err, test.want)
		}
	}
	if _, err := ReadCalibration("/nowhere"); err == nil || err.Error() != "open /nowhere: no such file or directory" {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestCurveBounded: no curve that can be read gives a cost that is negative or spoils sums.
func TestCurveBounded(t *testing.T) {
	falling := Curve{{2 * mib, 100}, {4 * mib, 50}}
	if got := falling.At(1 << 40); got != 0 {
		t.Errorf("a falling curve comes to %v", got)
	}
	rising := Curve{{0, 0}, {1, time.Minute}}
	if got := rising.At(math.MaxInt64); got != time.Minute {
		t.Errorf("a steep curve comes to %v", got)
	}
}

func FuzzCalibration(f *testing.F) {
	var good bytes.Buffer
	if err := (Calibration{Costs: H200()}).Write(&good); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add([]byte(`{"costs":{"cuMemMap":[{"bytes":1,"ns":1}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := readCalibration(bytes.NewReader(text))
		if err != nil {
			return
		}
		for call, curve := range c.Costs {
			for _, size := range []int64{0, 1, 2 * mib, 1 << 40, math.MaxInt64} {
				if cost := curve.At(size); cost < 0 || cost > maxCost {
					t.Errorf("%v of %d bytes costs %v", Call(call), size, cost)
				}
			}
		}
	})
}
