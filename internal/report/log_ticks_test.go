package report

import (
	"strings"
	"testing"
)

func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		least, most float64
		want        string
		minor       int
	}{
		{0.15, 6, "0.2 0.5 1 2 5", 9},
		{16, 563, "20 50 100 200 500", 8},
		{1e4, 1e6, "10000 100000 1e+06", 16},
		{43, 70, "50 60 70", 0},
		{44.5, 47.2, "45 46 47", 0},
	} {
		var labels []string
		minor := 0
		for _, tick := range (logTicks{}).Ticks(c.least, c.most) {
			if tick.Label == "" {
				minor++
			} else {
				labels = append(labels, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); got != c.want || c.minor > 0 && minor != c.minor {
			t.Errorf("%g to %g: labels %q and %d without, want %q and %d", c.least, c.most, got, minor, c.want, c.minor)
		}
	}
}
