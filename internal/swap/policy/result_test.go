package policy

import (
	"errors"
	"math"
	"testing"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// TestBetter puts the faster of two schedules first, and of equally fast ones that which copies less.
func TestBetter(t *testing.T) {
	for _, test := range []struct {
		a, b result
		want bool
	}{
		{result{step: 1, moved: 9, peak: 9}, result{step: 2}, true},
		{result{step: 2}, result{step: 1, moved: 9}, false},
		{result{step: 1, moved: 1, peak: 9}, result{step: 1, moved: 2}, true},
		{result{step: 1, moved: 2}, result{step: 1, moved: 1}, false},
		{result{step: 1, moved: 1}, result{step: 1, moved: 1, peak: 5}, false},
	} {
		if got := test.a.better(&test.b); got != test.want {
			t.Errorf("%+v before %+v: %v", test.a, test.b, got)
		}
	}
}

// TestMemberWithin takes the best schedule of those within a limit that are not too fast, and keeps none that another makes pointless.
func TestMemberWithin(t *testing.T) {
	m := &maker{members: []member{
		{result: result{step: 30, peak: 10}},
		{result: result{step: 20, peak: 20, moved: 5}},
		{result: result{step: 20, peak: 20, moved: 4}},
		{result: result{step: 10, peak: 30}},
	}}
	for _, test := range []struct {
		limit int64
		least int64
		want  int
	}{{9, 0, -1}, {10, 0, 0}, {10, 30, 0}, {10, 31, -1}, {19, 0, 0}, {20, 0, 2}, {30, 0, 3}, {30, 10, 3}, {30, 11, 2}, {30, 21, 0}} {
		got := m.best(test.limit, time.Duration(test.least))
		if test.want < 0 && got != nil || test.want >= 0 && got != &m.members[test.want] {
			t.Errorf("within %d, of at least %d ns: got %+v", test.limit, test.least, got)
		}
	}
}

// TestAddMember adds schedules of one graph, in any order, and no other is left that takes no more memory and is as good.
func TestAddMember(t *testing.T) {
	left := 0
	for seed := range uint64(60) {
		g, l := randomProblem(seed, 40)
		l.Host = math.MaxInt64
		_, l.Device = draft.Over(g.Plain(), 0)
		m := &maker{problem: newProblem(g, l)}
		var all []result
		for _, part := range []int64{10, 7, 8, 5, 9} {
			m.Limits.Device = l.Device * part / 10
			for _, plan := range []planner{planBelady, planFloor, planNone, planJoint} {
				actions, err := plan(m.problem)
				if err != nil {
					continue
				}
				r, err := m.simulate(actions)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, r)
				if err := m.addMember(actions); err != nil {
					t.Fatal(err)
				}
			}
		}
		var want []result
		for i, r := range all {
			pointless := false
			for _, x := range all[:i] {
				pointless = pointless || x.peak <= r.peak && x.compare(&r) <= 0
			}
			if !pointless {
				want = append(want, r)
			}
		}
		if len(want) != len(m.members) {
			t.Fatalf("seed %d: %d schedules, expected %d of %d", seed, len(m.members), len(want), len(all))
		}
		for i, x := range m.members {
			if x.result != want[i] {
				t.Fatalf("seed %d: %+v, expected %+v", seed, x.result, want[i])
			}
		}
		left += len(all) - len(want)
	}
	if left < 100 {
		t.Errorf("%d schedules were pointless", left)
	}
}

// TestHostOfMembers adds no schedule that takes more of the host than there is; that is no error.
func TestHostOfMembers(t *testing.T) {
	g := stack("ccccc", 100, 100)
	for host, want := range map[int64]int{99: 0, 100: 1} {
		m := &maker{problem: newProblem(g, swap.Limits{Device: 400, Host: math.MaxInt64, Link: perByte{}})}
		actions, err := planFloor(m.problem) // copies one tensor
		if err != nil {
			t.Fatal(err)
		}
		m.Limits.Host = host
		if err := m.addMember(actions); err != nil || len(m.members) != want {
			t.Errorf("%d bytes of the host: %d schedules, %v", host, len(m.members), err)
		}
		if err := m.addPlan(planBelady); err != nil || (len(m.members) > 0) != (want > 0) {
			t.Errorf("%d bytes of the host: %d schedules with belady's, %v", host, len(m.members), err)
		}
	}
}

// TestKeeps takes schedules up to the limits, and says by how much they exceed them, and where.
func TestKeeps(t *testing.T) {
	g := stack("ccccc", 100, 100)
	for device, want := range map[int64]int64{499: 1, 500: 0, 350: 150} {
		p := newProblem(g, swap.Limits{Device: device, Host: 0, Link: perByte{}})
		r, err := p.keeps(nil)
		short, isShort := errors.AsType[*draft.ShortError](err)
		if (want == 0) != (err == nil) || want > 0 && (!isShort || *short != draft.ShortError{Bytes: want, Op: 4}) || r.peak != 500 || r.op != 4 {
			t.Errorf("in %d bytes: %+v, %v", device, r, err)
		}
		if failed := p.accept(nil); (failed == nil) != (err == nil) {
			t.Errorf("in %d bytes: %v", device, failed)
		}
	}
	p := newProblem(g, swap.Limits{Device: 500, Host: 0, Link: perByte{}})
	if err := p.accept([]swap.Action{{Kind: swap.Prefetch, Tensor: 0, At: 3, Bytes: 100}}); err == nil {
		t.Error("a copy back of what is there is taken")
	}
}

// TestAutoSaysWhatIsMissing has the error of quick where no policy has a schedule: others' say what was missing where they gave up.
func TestAutoSaysWhatIsMissing(t *testing.T) {
	compared := 0
	for seed := range uint64(120) {
		g, l := randomProblem(seed, 20)
		errs := map[string]*draft.ShortError{}
		for _, p := range Policies() {
			_, err := p.Plan(g, l)
			if short, ok := errors.AsType[*draft.ShortError](err); ok {
				errs[p.Name] = short
			}
		}
		if len(errs) < len(Policies()) {
			continue
		}
		compared++
		want := *errs[quickName]
		if want.Policy = autoName; *errs[autoName] != want {
			t.Errorf("seed %d: %v, expected %v", seed, errs[autoName], &want)
		}
	}
	if compared < 20 {
		t.Errorf("%d problems that no policy solves", compared)
	}
}
