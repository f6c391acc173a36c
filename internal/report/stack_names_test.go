package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStackNames(t *testing.T) {
	const library = "/usr/lib/python3/dist-packages/torch/nn/"
	norm := func(line int) string {
		return fmt.Sprintf("main (train.py:%d);forward (%smodules/normalization.py:229);layer_norm (%sfunctional.py:2935)", line, library, library)
	}
	deep := "main (train.py:5);forward (b.py:1);forward (b.py:2);forward (b.py:3)"
	called := "main (train.py:9);_call_impl (torch/nn/modules/module.py:1);f (a.py:1)"
	twice := "main (train.py:9);_call_impl (torch/nn/modules/module.py:2);f (a.py:1)"
	deeper := "main (train.py:9);_call_impl (torch/nn/modules/module.py:1);_call_impl (torch/nn/modules/module.py:1);f (a.py:1)"
	names := NewStackNames([]string{norm(44), deep, norm(47), twice, deeper, called, "", norm(44)}, 26)
	want := StackNames{
		norm(44): "functional.py:2935 layer_norm < … < train.py:44 main",
		norm(47): "functional.py:2935 layer_norm < … < train.py:47 main",
		deep:     "b.py:3 forward",
		called:   "a.py:1 f < train.py:9 main (3 frames) #1",
		twice:    "a.py:1 f < train.py:9 main (3 frames) #2",
		deeper:   "a.py:1 f < train.py:9 main (4 frames)",
		"":       "(no stack)",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if got := NewStackNames([]string{called, deeper}, 26).Of(deeper); got != names.Of(deeper) {
		t.Errorf("beside other stacks it is called %q", got)
	}
	if got := names.Of("before the recording"); got != "before the recording" {
		t.Errorf("what is no stack is called %q", got)
	}
}

// Different stacks have different names, and the same ones each time.
func TestStackNamesRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var stacks []string
		for range 12 {
			var frames []string
			for range 1 + r.IntN(6) {
				file := []string{"a.py", "/x-packages/b.py", "torch/nn/modules/module.py"}[r.IntN(3)]
				frames = append(frames, fmt.Sprintf("f (%s:%d)", file, r.IntN(2)))
			}
			stacks = append(stacks, strings.Join(frames, ";"))
		}
		names := NewStackNames(stacks, 20)
		by := map[string]string{}
		for _, folded := range stacks {
			if other, taken := by[names[folded]]; taken && other != folded {
				t.Fatalf("seed %d: %s and %s are both %q", seed, other, folded, names[folded])
			}
			by[names[folded]] = folded
		}
		if diff := cmp.Diff(names, NewStackNames(stacks, 20)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}
