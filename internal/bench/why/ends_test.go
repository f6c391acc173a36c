package why

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// TestEnds breaks down what PyTorch held at the end of each bundled snapshot, and compares it with the segments and blocks that the
// snapshot itself lists. testdata/ends.csv has the sums of their bytes by state, as Python's pickle reads them. If the last event of a
// snapshot emptied the cache, the replay empties its cache, too.
func TestEnds(t *testing.T) {
	f, err := os.Open("testdata/ends.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		t.Run(row[0]+","+row[1], func(t *testing.T) {
			file := filepath.Join(testdata, "snapshots", row[0]+".pickle.gz")
			if _, err := os.Stat(file); err != nil {
				file = filepath.Join(testdata, "settings", row[0]+".pickle.gz")
			}
			for _, p := range open(t, file) {
				if fmt.Sprint(p.Device) == row[1] {
					checkEnd(t, p, row[2] == "true", row[3:])
				}
			}
		})
	}
}

// checkEnd compares with the bytes that are reserved, requested, in blocks in use, and pending.
func checkEnd(t *testing.T, p *replay.Program, emptied bool, want []string) {
	conf, _ := allocconf.Recorded(p.AllocConf)
	dev := sim.New(0, sim.H200())
	a, err := blocks.NewTorch(dev, conf)
	if err != nil {
		t.Fatal(err)
	}
	last := p.Steps() - 1
	live, err := replay.Until(t.Context(), p, a, dev, last)
	if err != nil {
		t.Fatal(err)
	}
	if emptied {
		if err := a.Empty(); err != nil {
			t.Fatal(err)
		}
	}
	m := newMoment(p, replay.Peak{Step: last}, live)
	account, err := m.account(a.Holdings())
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range []int64{account.Reserved, account.Requested, account.Requested + m.parts[rounding] + m.parts[tails], m.parts[pending]} {
		if strconv.FormatInt(got, 10) != want[i] {
			t.Errorf("%s bytes: %d, PyTorch %s", [...]string{"reserved", "requested", "allocated", "pending"}[i], got, want[i])
		}
	}
}
