package timeline

import (
	"encoding/json"
	"strings"
	"testing"

	"gm/internal/swap/simulate"
)

func TestWrite(t *testing.T) {
	l := &Timeline{Name: "step \"one\""}
	l.Add(simulate.Span{Name: "a", Begin: 0, End: 1500, Tensor: -1, Tensors: 10, Base: 5})
	l.Add(simulate.Span{Lane: simulate.Out, Name: "x\x1b", Begin: 1500, End: 2500, Tensor: 3})
	l.Add(simulate.Span{Name: "wait for a copy out", Begin: 1500, End: 2500, Tensor: 3, Wait: true})
	l.Add(simulate.Span{Begin: 2500, End: 2500, Tensor: -1, Host: 7})
	var out strings.Builder
	if err := l.Write(&out); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Ph, Name, Cat string
			Tid           int
			Ts, Dur       float64
			Args          map[string]any
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &trace); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var got []string
	for _, e := range trace.TraceEvents {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"Ph":"M","Name":"process_name","Cat":"","Tid":0,"Ts":0,"Dur":0,"Args":{"name":"step \"one\""}}`,
		`{"Ph":"M","Name":"thread_name","Cat":"","Tid":1,"Ts":0,"Dur":0,"Args":{"name":"compute"}}`,
		`{"Ph":"M","Name":"thread_sort_index","Cat":"","Tid":1,"Ts":0,"Dur":0,"Args":{"sort_index":0}}`,
		`{"Ph":"M","Name":"thread_name","Cat":"","Tid":2,"Ts":0,"Dur":0,"Args":{"name":"copies to the host"}}`,
		`{"Ph":"M","Name":"thread_sort_index","Cat":"","Tid":2,"Ts":0,"Dur":0,"Args":{"sort_index":1}}`,
		`{"Ph":"M","Name":"thread_name","Cat":"","Tid":3,"Ts":0,"Dur":0,"Args":{"name":"copies to the device"}}`,
		`{"Ph":"M","Name":"thread_sort_index","Cat":"","Tid":3,"Ts":0,"Dur":0,"Args":{"sort_index":2}}`,
		`{"Ph":"X","Name":"a","Cat":"operator","Tid":1,"Ts":0,"Dur":1.5,"Args":null}`,
		`{"Ph":"C","Name":"device memory","Cat":"","Tid":0,"Ts":0,"Dur":0,"Args":{"others":5,"tensors":10}}`,
		`{"Ph":"C","Name":"host memory","Cat":"","Tid":0,"Ts":0,"Dur":0,"Args":{"copies":0}}`,
		`{"Ph":"X","Name":"x\u001b","Cat":"copy","Tid":2,"Ts":1.5,"Dur":1,"Args":{"tensor":3}}`,
		`{"Ph":"X","Name":"wait for a copy out","Cat":"wait","Tid":1,"Ts":1.5,"Dur":1,"Args":{"tensor":3}}`,
		`{"Ph":"X","Name":"operator","Cat":"operator","Tid":1,"Ts":2.5,"Dur":0,"Args":null}`,
		`{"Ph":"C","Name":"device memory","Cat":"","Tid":0,"Ts":2.5,"Dur":0,"Args":{"others":0,"tensors":0}}`,
		`{"Ph":"C","Name":"host memory","Cat":"","Tid":0,"Ts":2.5,"Dur":0,"Args":{"copies":7}}`,
	}
	if text, expected := strings.Join(got, "\n"), strings.Join(want, "\n"); text != expected {
		t.Errorf("got\n%s\nwant\n%s", text, expected)
	}
}
