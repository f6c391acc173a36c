package testbed

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/swap/link"
)

// TestAll looks at what any machine keeps to: copies are no faster than the link, and each has a name of its own and a source.
func TestAll(t *testing.T) {
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Testbed) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("they are not in the order of their names")
	}
	for _, b := range all {
		if b.Copies > b.Stated || b.Device < 1<<30 || !strings.Contains(b.About, "20") {
			t.Errorf("%+v", b)
		}
		if got, err := Lookup(b.Name); err != nil || got != b {
			t.Errorf("%s: %+v, %v", b.Name, got, err)
		}
		l, err := b.Link()
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range []link.Load{{}, {Both: true}, {GPUs: 8}} {
			if out, in := l.Under(load).OutTime(3*b.Copies), l.Under(load).InTime(b.Copies/1000); out != 3*time.Second || in != time.Millisecond {
				t.Errorf("%s, %+v: 3 s of copies take %v, 1 ms of them %v", b.Name, load, out, in)
			}
		}
	}
	if _, err := Lookup("h100"); err == nil || !strings.Contains(err.Error(), "expected one of a800, titan-x, v100") {
		t.Error(err)
	}
}
