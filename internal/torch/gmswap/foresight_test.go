package gmswap

import (
	"os"
	"os/exec"
	"testing"
)

// TestForesight foresees the needs of steps from those of steps of other sizes.
func TestForesight(t *testing.T) { passes(t, "testdata/foresight.py") }

// TestParting chooses what leaves in steps that follow no schedule.
func TestParting(t *testing.T) { passes(t, "testdata/parting.py") }

// TestFamily has schedules made for steps of all sizes, from two that were seen.
func TestFamily(t *testing.T) { passes(t, "testdata/family.py") }

// TestBuckets has schedules made for some steps followed by others, whose inputs vary in several ways.
func TestBuckets(t *testing.T) { passes(t, "testdata/buckets.py") }

// TestInputs tells which of two steps' inputs differ in all that varies.
func TestInputs(t *testing.T) { passes(t, "testdata/inputs.py") }

// TestSelection looks at a part of steps that follow schedules.
func TestSelection(t *testing.T) { passes(t, "testdata/selection.py") }

// TestClock times operators of a device that waits for the host.
func TestClock(t *testing.T) { passes(t, "testdata/clock.py") }

// TestPace has schedules count on a program that launches operators slowly.
func TestPace(t *testing.T) { passes(t, "testdata/pace.py") }

// TestLayout checks when steps get the addresses of a plan, and when no more.
func TestLayout(t *testing.T) { passes(t, "testdata/layout.py") }

// TestLiterals tells numbers of a program's text from others, by this Python's instructions.
func TestLiterals(t *testing.T) { passes(t, "testdata/literals.py") }

// TestTurns has schedules made beside a program's threads.
func TestTurns(t *testing.T) { passes(t, "testdata/turns.py") }

// TestRemembered has steps that follow no schedule recompute as recorded steps of other sizes did.
func TestRemembered(t *testing.T) { passes(t, "testdata/remembered.py") }

// TestLending lends memory of the host to requests that nobody can do without.
func TestLending(t *testing.T) { passes(t, "testdata/lending.py") }

// TestSampled compares words of recomputed tensors.
func TestSampled(t *testing.T) { passes(t, "testdata/sampled.py") }

// passes runs a program that checks parts of the hook by themselves.
func passes(t *testing.T, program string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	home := t.TempDir()
	if err := Install(home); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-S", program)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+home+":testdata/stub", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func TestGarbage(t *testing.T) { passes(t, "testdata/garbage.py") }
