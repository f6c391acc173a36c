package trace

import "testing"

func TestParseFrame(t *testing.T) {
	for text, want := range map[string]Frame{
		"forward (/x/model.py:31)":     {"forward", "/x/model.py", 31},
		"<module> (<stdin>:1)":         {"<module>", "<stdin>", 1},
		"c10::f(int, long) (??:0)":     {"c10::f(int, long)", "??", 0},
		"f (a (b).py:7)":               {"f (a", "b).py", 7},
		"native":                       {Name: "native"},
		"operator() (const)":           {Name: "operator() (const)"},
		"cut (model.py:31":             {Name: "cut (model.py:31"},
		"negative (model.py:-1)":       {Name: "negative (model.py:-1)"},
		"large (model.py:99999999999)": {Name: "large (model.py:99999999999)"},
		"":                             {},
	} {
		if got := ParseFrame(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
