package changes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name     string
		a, b     []string
		ofA, ofB map[string]string
	}{
		{"the same", []string{"f (a.py:1)", "f (a.py:2)"}, []string{"f (a.py:2)", "f (a.py:1)"},
			map[string]string{"f (a.py:1)": "f (a.py:1)", "f (a.py:2)": "f (a.py:2)"},
			map[string]string{"f (a.py:1)": "f (a.py:1)", "f (a.py:2)": "f (a.py:2)"}},
		{"one line moved", []string{"f (a.py:1)", "g (a.py:9)"}, []string{"f (a.py:1)", "g (a.py:11)"},
			map[string]string{"f (a.py:1)": "f (a.py:1)", "g (a.py:9)": "g (a.py:11)"},
			map[string]string{"f (a.py:1)": "f (a.py:1)", "g (a.py:11)": "g (a.py:11)"}},
		{"all lines moved by one, some onto others", []string{"f (a.py:9)", "f (a.py:10)", "g (b.py:1)"}, []string{"f (a.py:10)", "f (a.py:11)", "g (b.py:2)"},
			map[string]string{"f (a.py:9)": "f (a.py:10)", "f (a.py:10)": "f (a.py:11)", "g (b.py:1)": "g (b.py:2)"},
			map[string]string{"f (a.py:10)": "f (a.py:10)", "f (a.py:11)": "f (a.py:11)", "g (b.py:2)": "g (b.py:2)"}},
		{"not as many", []string{"f (a.py:3)"}, []string{"f (a.py:5)", "f (a.py:4)"},
			map[string]string{"f (a.py:3)": "f (a.py:4)"},
			map[string]string{"f (a.py:4)": "f (a.py:4)", "f (a.py:5)": "f (a.py:4)"}},
		{"another folder, other addresses", []string{"f (/home/a/x.py:3);0x7ff1 (??:0)"}, []string{"f (/srv/x.py:4);0x80ab (??:0)"},
			map[string]string{"f (/home/a/x.py:3);0x7ff1 (??:0)": "f (/srv/x.py:4);0x80ab (??:0)"},
			map[string]string{"f (/srv/x.py:4);0x80ab (??:0)": "f (/srv/x.py:4);0x80ab (??:0)"}},
		{"started in another way", []string{"<module> (a.py:3)"}, []string{"<module> (<stdin>:3);run_path (<frozen runpy>:286);<module> (a.py:3)"},
			map[string]string{"<module> (a.py:3)": "<module> (<stdin>:3);run_path (<frozen runpy>:286);<module> (a.py:3)"},
			map[string]string{"<module> (<stdin>:3);run_path (<frozen runpy>:286);<module> (a.py:3)": "<module> (<stdin>:3);run_path (<frozen runpy>:286);<module> (a.py:3)"}},
		{"typed in", []string{"<module> (<stdin>:3)"}, []string{"<module> (<stdin>:3)", "f (<stdin>:1)"},
			map[string]string{"<module> (<stdin>:3)": "<module> (<stdin>:3)"},
			map[string]string{"<module> (<stdin>:3)": "<module> (<stdin>:3)", "f (<stdin>:1)": "f (<stdin>:1)"}},
		{"other functions", []string{"f (a.py:3)"}, []string{"g (a.py:3)", "f (b.py:3)"},
			map[string]string{"f (a.py:3)": "f (a.py:3)"},
			map[string]string{"g (a.py:3)": "g (a.py:3)", "f (b.py:3)": "f (b.py:3)"}},
		{"nothing", nil, nil, map[string]string{}, map[string]string{}},
	} {
		ofA, ofB := Match(c.a, c.b)
		if diff := cmp.Diff(c.ofA, ofA); diff != "" {
			t.Errorf("%s: A (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.ofB, ofB); diff != "" {
			t.Errorf("%s: B (-want +got):\n%s", c.name, diff)
		}
	}
}
