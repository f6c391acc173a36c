package shapes

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, want := range Transformers() {
		if got, err := Lookup(want.Name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", want.Name, got, err)
		}
	}
	if _, err := Lookup("bert"); err == nil || !strings.Contains(err.Error(), "expected one of gpt-7b, gpt-13b") {
		t.Error(err)
	}
	for _, m := range Memo() {
		if !strings.Contains(m.About, "MEMO") {
			t.Errorf("%s: %s", m.Name, m.About)
		}
	}
}

// TestPublishedParameters holds counts against those of the published models, in millions.
func TestPublishedParameters(t *testing.T) {
	for name, want := range map[string]int64{
		"opt-1.3b": 1316, "opt-13b": 12853, "gpt2-medium": 355, "gpt2-xl": 1558, "gpt-neox-20b": 20555, "llama-7b": 6738, "llama-8b": 8030,
		"vicuna-13b": 13016, "llama-65b": 65286, "llama-70b": 70554, "llama-405b": 405853, "mixtral-8x7b": 46703, "mixtral-8x22b": 140621,
		"deepseek-v3": 671026,
	} {
		m, err := Lookup(name)
		if got := (m.Parameters() + 500_000) / 1_000_000; err != nil || got != want {
			t.Errorf("%s: %d million parameters, want %d; %v", name, got, want, err)
		}
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]int64{"7": 7, "64Ki": 64 << 10, "64K": 64 << 10, "64k": 64 << 10, "2M": 2 << 20, "3Gi": 3 << 30} {
		if got, err := ParseNumber(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

func TestEachGiven(t *testing.T) {
	var seen []string
	given, err := EachGiven([]string{"seq=64Ki", "tp=4"}, func(name, value string) error {
		seen = append(seen, name+value)
		return nil
	})
	if err != nil || strings.Join(given, " ") != "seq tp" || strings.Join(seen, " ") != "seq64Ki tp4" {
		t.Errorf("%q, %q, %v", given, seen, err)
	}
	for field, want := range map[string]string{"seq": "not of the form name=value", "tp=1": "tp is given twice"} {
		if _, err := EachGiven([]string{"tp=4", field}, func(string, string) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
