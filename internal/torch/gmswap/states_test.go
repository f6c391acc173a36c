package gmswap

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// moved is what is said at the end of states that waited on the host.
var moved = regexp.MustCompile(`gmswap: states of SGD: \d+\.\d\d GiB on the host, in (\d+) of (\d+) steps; (?:the last update took|updates are early)`)

// TestStates has less memory than parameters, gradients and states take: the states wait on the host, and what comes out is the same.
func TestStates(t *testing.T) {
	for i, name := range []string{"moments", "moments_read", "moments_failing", "moments_compiled"} {
		for early := range 2 {
			t.Run(fmt.Sprint(name, early), func(t *testing.T) {
				t.Parallel()
				s, r := short(t, name, uint64(62+4*i), fmt.Sprintf("GMSWAP_EARLY=%d", early))
				found := moved.FindStringSubmatch(r.stderr)
				if found == nil {
					t.Fatalf("it said %s", r.stderr)
				}
				n, _ := strconv.Atoi(found[1])
				all, _ := strconv.Atoi(found[2])
				if n < all-4 || r.code != 0 {
					t.Errorf("exit status %d; states were moved in %d of %d steps", r.code, n, all)
				}
				s.holdsNothing()
			})
		}
	}
}

// TestStatesStay has states that nobody may move, so that what finds no room is put on the host, and none where memory suffices.
func TestStatesStay(t *testing.T) {
	t.Parallel()
	_, r := short(t, "moments_unfit", 62)
	if r.code != 0 || !strings.Contains(r.stderr, "requests found no room, and the GPU used memory of the host") || !strings.Contains(r.stderr, "gmswap: states of SGD stay on the device: it is differentiable") {
		t.Errorf("exit status %d: %s", r.code, r.stderr)
	}
	if s, r := short(t, "moments", 120); r.code != 0 || strings.Contains(r.stderr, "states of") {
		t.Errorf("exit status %d: %s", r.code, r.stderr)
	} else {
		s.holdsNothing()
	}
}

// TestHoming has gradients that found no room come back to the device when there is some.
func TestHoming(t *testing.T) {
	t.Parallel()
	s, r := short(t, "homing", 60)
	if r.code != 0 || !strings.Contains(r.stderr, "requests found no room") {
		t.Errorf("exit status %d: %s", r.code, r.stderr)
	}
	s.holdsNothing()
}

// lodged is what the program prints of each step when its forward pass has ended: gradients on the host, and bytes that are used there.
var lodged = regexp.MustCompile(`lodged (\[\[.*\]\])`)

// TestLodging has gradients that wait for their optimizer leave the device to what a forward pass needs. From the third step on nothing else is there, but
// where fewer have left to see whether they would do.
func TestLodging(t *testing.T) {
	for _, share := range []uint64{52, 56, 60} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			s, r := short(t, "lodging", share)
			found := lodged.FindStringSubmatch(r.stderr)
			if r.code != 0 || found == nil || !strings.Contains(r.stderr, "gradients and parameters that waited") {
				t.Fatalf("exit status %d: %s", r.code, r.stderr)
			}
			var steps [][2]int
			if err := json.Unmarshal([]byte(found[1]), &steps); err != nil {
				t.Fatal(err)
			}
			const gradient = 2 << 20
			tries := 0
			for _, step := range steps[2:] {
				if n, all := step[0], step[1]; n == 0 || all != n*gradient {
					tries++
				}
			}
			if tries > 1 {
				t.Errorf("in %d steps not gradients of %d bytes alone were on the host: %v", tries, gradient, steps)
			}
			s.holdsNothing()
		})
	}
}

// TestLodgingRandom does so with programs that add up gradients, hold and read them, and make them anew, four of them from GM_SEED on.
func TestLodgingRandom(t *testing.T) {
	first, _ := strconv.Atoi(os.Getenv("GM_SEED"))
	for i, share := range []uint64{46, 54, 62, 50} {
		t.Run(fmt.Sprint(first+i), func(t *testing.T) {
			t.Parallel()
			s, r := short(t, "lodging_at_random", share, fmt.Sprintf("SEED=%d", first+i), "GMSWAP_HOST=1073741824")
			if r.code != 0 || !strings.Contains(r.stderr, "gradients and parameters that waited") {
				t.Errorf("exit status %d: %s", r.code, r.stderr)
			}
			s.holdsNothing()
		})
	}
}

// TestWeights has parameters wait on the host that found no room when they were made.
func TestWeights(t *testing.T) {
	for _, share := range []uint64{30, 40, 50, 60} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			s, r := short(t, "weights", share, "GMSWAP_HOST=1073741824")
			found := regexp.MustCompile(`waiting (\d+)`).FindStringSubmatch(r.stderr)
			if r.code != 0 || found == nil || found[1] == "0" {
				t.Errorf("exit status %d: %s", r.code, r.stderr)
			}
			s.holdsNothing()
		})
	}
}

// short runs a program in a share, in percent, of what it takes. It writes what it writes without the hook, as far as it comes.
func short(t *testing.T, name string, share uint64, env ...string) (*session, result) {
	t.Helper()
	s := newSession(t)
	want := s.run(name, env...)
	if want.code != 0 || want.stderr != "" {
		t.Fatalf("without the hook: %+v", want)
	}
	limit := s.physical() * share / 100
	s = newSession(t)
	r := s.hooked(name, "auto", append(env, fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit))...)
	if !strings.HasPrefix(want.stdout, r.stdout) || r.code == 0 && r.stdout != want.stdout {
		t.Fatalf("exit status %d\n%s%s", r.code, firstDifference(r.stdout, want.stdout), r.stderr)
	}
	if took := s.physical(); took == 0 || took > limit {
		t.Errorf("it took %d bytes of the %d allowed", took, limit)
	}
	return s, r
}

// TestStatesFew compiles a model as a whole that lacks a little memory: as many states as there is room for stay on the device.
func TestStatesFew(t *testing.T) {
	s, r := short(t, "moments_compiled", 90)
	data, err := os.ReadFile(s.facts())
	if err != nil || r.code != 0 {
		t.Fatalf("%v; exit status %d: %s", err, r.code, r.stderr)
	}
	var f facts
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	const weights, steps = 12, 12 // of the program
	if f.Out == 0 || f.Out > weights*steps*2/3 {
		t.Errorf("%d states were copied to the host; there are %d, in %d steps", f.Out, weights, steps)
	}
	s.holdsNothing()
}
