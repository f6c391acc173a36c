package main

import "testing"

func TestGrowth(t *testing.T) {
	for text, want := range map[string]int64{"+5%": 1050, "5%": 1050, "+0%": 1000, "+0.25%": 1002, "+1KiB": 2024, "24B": 1024, "+1048576": 1049576, "+0": 1000, "100%": 2000} {
		var g growth
		if err := g.UnmarshalText([]byte(text)); err != nil || g.most(1000) != want {
			t.Errorf("%s of 1000: %d, %v, want %d", text, g.most(1000), err, want)
		}
	}
	for _, text := range []string{"", "+", "%", "-5%", "+-5%", "NaN%", "+Inf%", "much", "5%%", "1e9%", "24", "+5"} {
		var g growth
		if err := g.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %+v, want an error", text, g)
		}
	}
}
