package gmswap

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// early is what is said of early updates at the end.
var early = regexp.MustCompile(`gmswap: (\d+) of 12 steps of SGD with early updates: at most (\d+) bytes of gradients at a time, of (\d+)`)

// TestEarly updates parameters in the backward pass, with what is saved moved meanwhile. Parameters come out as without the hook, and one
// gradient is there at a time.
func TestEarly(t *testing.T) {
	for _, name := range []string{"ahead", "ahead_twice", "ahead_frozen"} {
		for _, how := range []string{"remake", "rows", "offload"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newSession(t)
				_, said := s.same(name, how, "GMSWAP_EARLY=1")
				found := early.FindStringSubmatch(strings.Join(said, "\n"))
				if found == nil {
					t.Fatalf("it said %q", said)
				}
				var n [3]int
				for i, text := range found[1:] {
					n[i], _ = strconv.Atoi(text)
				}
				const gradient = 4 * 256 * 4
				gradients := map[string]int{"ahead": 9, "ahead_twice": 6, "ahead_frozen": 6}[name]
				if n != [3]int{9, gradient, gradients * gradient} {
					t.Errorf("it said %q", said)
				}
			})
		}
	}
}

// TestNotEarly trains in ways in which early updates would be wrong. They come out as without the hook, which says why.
func TestNotEarly(t *testing.T) {
	for name, want := range map[string][]string{
		"ahead_clip":    {"SGD: clip (ahead.py) reads gradients"},
		"ahead_replace": {"SGD: replace (ahead.py) sets gradients"},
		"ahead_again":   {"SGD: several backward passes come before a step()"},
		"ahead_look":    {"SGD: "},
		"ahead_warm":    {"SGD: hyper-parameters or hooks change between the backward pass and step()"},
		"ahead_hook":    {"SGD: its step() has hooks, or is replaced"},
		"ahead_drop":    {"SGD: gradients are dropped before step()"},
		"ahead_closure": {"SGD: step() has a closure"},
		"ahead_zeros":   {"SGD: gradients are set to zero instead of None"},
		"ahead_others": {
			"LBFGS: it is none of torch.optim's that update each parameter by itself", "Own: it is none of",
			"SGD: DistributedDataParallel sums up gradients of many parameters together",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			s.hook = append(s.hook, "GMSWAP_EARLY=1")
			r := s.hooked(name, "auto")
			if r.code != 0 || r.stdout != s.want(name) {
				t.Fatalf("exit status %d\n%s%s", r.code, firstDifference(r.stdout, s.want(name)), r.stderr)
			}
			var said []string
			for line := range strings.Lines(r.stderr) {
				if text, ok := strings.CutPrefix(line, "gmswap: no early updates by "); ok {
					said = append(said, text)
				}
			}
			s.says(said, want)
		})
	}
}

// TestTooLate begins to do such things when parameters have been changed: the program ends.
func TestTooLate(t *testing.T) {
	for name, want := range map[string]string{
		"ahead_late_clip":    "clip (ahead.py) reads gradients",
		"ahead_late_replace": "replace (ahead.py) sets gradients",
		"ahead_late_again":   "uses a parameter after its gradient is complete, before step()",
		"ahead_late_look":    "uses a parameter after its gradient is complete, before step()",
		"ahead_late_warm":    "hyper-parameters or hooks change between the backward pass and step()",
		"ahead_late_hook":    "hyper-parameters or hooks change between the backward pass and step()",
		"ahead_late_drop":    "gradients are dropped before step()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			r := s.hooked(name, "auto", "GMSWAP_EARLY=1")
			if !strings.HasPrefix(s.want(name), r.stdout) || strings.Count(r.stdout, "\n") != 7 {
				t.Errorf("it wrote %q", r.stdout)
			}
			if r.code != 1 || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "leave out --early-updates") {
				t.Errorf("exit status %d: %s", r.code, r.stderr)
			}
		})
	}
}
