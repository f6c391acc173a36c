package page

import (
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/trace/changes"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/overview"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestGroups compares the groups that two recordings have on one page with those of gmtrace diff: as many differ at the peaks, by as much.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		differ bool
	}{
		{"snapshots/gpt2.pickle.gz", "snapshots/gpt2-expandable.pickle.gz", false}, // started in another way
		{"snapshots/gpt2.pickle.gz", "snapshots/oom.pickle.gz", true},
		{"captures/oom.parquet", "snapshots/oom.pickle.gz", true},
	} {
		t.Run(c.a+" "+c.b, func(t *testing.T) {
			a, b := recording(t, c.a), recording(t, c.b)
			match(a, b)
			var want, got []changes.Pair
			for _, g := range changes.CompareTraces(side(t, c.a), side(t, c.b)).Devices[0].Peak.Groups {
				want = append(want, changes.Pair{A: g.A, B: g.B})
			}
			sums := map[string]*changes.Pair{}
			for group, bytes := range a.parts[0].groupsAtPeak() {
				sums[group] = &changes.Pair{A: bytes}
			}
			for group, bytes := range b.parts[0].groupsAtPeak() {
				if sums[group] == nil {
					sums[group] = &changes.Pair{}
				}
				sums[group].B = bytes
			}
			for _, s := range sums {
				if s.A != s.B {
					got = append(got, *s)
				}
			}
			less := func(x, y changes.Pair) bool { return x.A < y.A || x.A == y.A && x.B < y.B }
			if diff := cmp.Diff(want, got, cmpopts.SortSlices(less), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("groups (-diff +page):\n%s", diff)
			}
			if c.differ != (len(got) > 0) {
				t.Errorf("%d groups differ", len(got))
			}
			names := slices.Concat(unpack(t, a.parts[0]).Stacks, unpack(t, b.parts[0]).Stacks)
			if slices.ContainsFunc(names, func(s stackData) bool { return s.Group == "" }) {
				t.Error("a stack is in no group")
			}
		})
	}
}

// groupsAtPeak adds up what lives at the peak.
func (p *part) groupsAtPeak() map[string]int64 {
	at, _ := p.peak()
	sums := map[string]int64{}
	for i := range p.tensors {
		if t := &p.tensors[i]; t.liveAt(at) {
			k := &p.kinds[t.kind]
			sums[p.groups[p.stacks[k.stack]]] += k.size
		}
	}
	return sums
}

func side(t *testing.T, name string) changes.Side {
	t.Helper()
	s := source(t, tracetest.Read(t, testdata+name), name)
	o, err := trace.ReadSource(s, overview.Read)
	if err != nil {
		t.Fatal(err)
	}
	side, err := changes.ReadSide(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return side
}
