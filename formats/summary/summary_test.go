package summary_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"gm/formats/summary"
)

func write(t *testing.T, rows ...*summary.Summary) []byte {
	t.Helper()
	var out bytes.Buffer
	w := summary.NewWriter(&out)
	if err := summary.Write(w, rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRoundTrip gives every field a value of its own, by reflection: a field without a column comes back empty.
func TestRoundTrip(t *testing.T) {
	want := &summary.Summary{}
	v, n := reflect.ValueOf(want).Elem(), int64(0)
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch v.Kind() {
		case reflect.String:
			v.SetString(strings.Repeat("x", int(n)))
		case reflect.Int64:
			v.SetInt(n)
		default:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		}
	}
	for i := range v.NumField() {
		fill(v.Field(i))
	}
	file := write(t, want, &summary.Summary{Job: "j", Rank: -1})
	r, err := summary.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	var got []*summary.Summary
	if err := summary.Each(r, func(s *summary.Summary) error { got = append(got, s); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || *got[0] != *want || got[1].Job != "j" || got[1].Rank != -1 {
		t.Errorf("%+v", got)
	}
}

func TestRules(t *testing.T) {
	for want, s := range map[string]*summary.Summary{
		"no job": {}, "job j, rank 3: -1 is negative": {Job: "j", Rank: 3, Peak: -1}, "job k, rank 0: -7 is negative": {Job: "k", StartNS: -7},
	} {
		err := summary.Write(summary.NewWriter(&bytes.Buffer{}), []*summary.Summary{s})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	var out bytes.Buffer
	w := summary.NewWriter(&out)
	if err := summary.Write(w, []*summary.Summary{{Job: "j", Stacks: "a;b 3"}}); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(_ *testing.T, file []byte) {
		r, err := summary.NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
		if err == nil {
			_ = summary.Each(r, func(*summary.Summary) error { return nil })
		}
	})
}
