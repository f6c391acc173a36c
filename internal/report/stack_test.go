package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStack(t *testing.T) {
	const site = "/usr/local/lib/python3.12/site-packages/"
	module := "_wrapped_call_impl (" + site + "torch/nn/modules/module.py:1779);_call_impl (" + site + "torch/nn/modules/module.py:1790)"
	gpt := "main (/home/user/train.py:40);step (/home/user/train.py:9);" + module + ";forward (" + site + "transformers/modeling_gpt2.py:608);" +
		module + ";forward (" + site + "transformers/modeling_gpt2.py:241);" + module + ";forward (" + site + "torch/nn/modules/linear.py:134)"
	for name, c := range map[string]struct {
		folded string
		width  int
		want   string
	}{
		"none":     {"", 60, "(no stack)"},
		"all fit":  {gpt, 200, "linear.py:134 forward < modeling_gpt2.py:241 forward < modeling_gpt2.py:608 forward < train.py:9 step < train.py:40 main"},
		"some fit": {gpt, 80, "linear.py:134 forward < modeling_gpt2.py:241 forward < … < train.py:9 step"},
		"few fit":  {gpt, 50, "linear.py:134 forward < … < train.py:9 step"},
		"own code": {"<module> (/home/user/train.py:12)", 60, "train.py:12"},
		"plumbing": {module, 70, "module.py:1790 _call_impl < module.py:1779 _wrapped_call_impl"},
		"native beside Python": {
			"_start (??:0);<module> (/a.py:1);at::empty(int, long) (??:0);c10::cuda::Native::malloc(void**, (anonymous namespace)::x) (x.cpp:0)", 60, "a.py:1",
		},
		"native alone": {"__clone (??:0);at::empty(int) (??:0);c10::cuda::Native::malloc(void**) (??:0)", 60, "at::empty < __clone"},
		"backward":     {"aten::addmm;autograd::engine::evaluate_function: AddmmBackward0;AddmmBackward0;aten::mm", 60, "aten::mm < AddmmBackward0 < aten::addmm"},
		"generated":    {"run (/home/user/a.py:3);forward (<eval_with_key>.0:7)", 60, "<eval_with_key>.0:7 forward < a.py:3 run"},
		"recursion":    {"<module> (/a.py:9);f (/a.py:1);f (/a.py:1);f (/a.py:1)", 60, "a.py:1 f < a.py:9"},
		"other folds":  {"a;b;c", 60, "c < b < a"},
		"no room":      {"abcdefgh (/x.py:1)", 9, "x.py:1 a…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Stack(c.folded, c.width); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestPlumbing(t *testing.T) {
	for text, want := range map[string]bool{
		"_call_impl (/usr/lib/python3.12/site-packages/torch/nn/modules/module.py:1790)": true, "c10::cuda::Native::malloc(void**) (??:0)": true,
		"forward (/home/user/module.py:12)": false, "forward (torch/nn/modules/linear.py:134)": false, "": false,
	} {
		if got := Plumbing(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzStack(f *testing.F) {
	f.Add("a (b.py:1);c (??:0)", 20)
	f.Add(";;", 0)
	f.Fuzz(func(t *testing.T, folded string, width int) {
		width = max(width%200, len("(no stack)"))
		if got := Stack(strings.ToValidUTF8(folded, "?"), width); utf8.RuneCountInString(got) > width {
			t.Errorf("%q is longer than %d characters", got, width)
		}
	})
}
