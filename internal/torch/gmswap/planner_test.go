package gmswap

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gm/internal/libgm/planner/wire"
)

// TestPlannerFails trains with planners that end, are killed, and answer what cannot be followed. What comes out is the same: tensors are moved
// as they come, and a line says why.
func TestPlannerFails(t *testing.T) {
	dir := t.TempDir()
	for name, answer := range map[string]string{"words": "no", "lost": `{"device":1000000,"actions":[[1,0,1,0]]}`} {
		var m bytes.Buffer
		err := wire.Write(&m, wire.Message{Kind: wire.Schedule, Body: []byte(answer)})
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, name), m.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for script, want := range map[string]string{
		"exit 3":                    "the planner ended before it answered: exit status 3",
		"sleep 0.2; kill -KILL $$":  "the planner ended before it answered: signal: killed",
		"echo these are only words": "the planner's answer: not a message of gm",
		"cat " + dir + "/words":     "the planner's answer is not a schedule: read the answer: ",
		"cat " + dir + "/lost":      "the planner's answer is not a schedule: the schedule cannot be followed: ",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			planner := filepath.Join(t.TempDir(), "planner")
			if err := os.WriteFile(planner, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			s := newSession(t)
			f, said := s.same("plain", "auto", "GMSWAP_DEVICE=1000000", "GM_PLANNER="+planner)
			if f.Planned != 0 || f.Out == 0 || f.Back == 0 || len(said) != 1 ||
				!strings.HasPrefix(said[0], "gmswap: no schedule: "+want) || !strings.HasSuffix(said[0], "; tensors are moved as they come") {
				t.Errorf("the hook did %+v and said %q", f, said)
			}
		})
	}
}

// TestPlannerLater has a planner fail once a first schedule is followed: that one stays.
func TestPlannerLater(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	planner, first := filepath.Join(t.TempDir(), "planner"), filepath.Join(t.TempDir(), "first")
	script := "#!/bin/sh\n[ ! -e " + first + " ] || kill -KILL $$\n: >" + first + "\nexec " + self + " planner\n"
	if err := os.WriteFile(planner, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	f, said := s.same("plain", "auto", "GMSWAP_DEVICE=1000000", "GM_PLANNER="+planner)
	if f.Followed == 0 || len(said) != 1 || !strings.HasPrefix(said[0], "gmswap: the schedule is kept: the planner ended before it answered") {
		t.Errorf("the hook did %+v and said %q", f, said)
	}
}

// TestPlannerLate has schedules come some steps after they were requested. Steps go on meanwhile, on demand or by the schedule before.
func TestPlannerLate(t *testing.T) {
	for _, name := range []string{"plain", "accumulated", "evaluated", "varied", "raised", "abandoned", "streams", "late_change"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := newSession(t).same(name, "remake", "LATE=3")
			if f.Planned == 0 || f.Out == 0 || name == "plain" && f.Followed == 0 {
				t.Errorf("the hook did %+v", f)
			}
		})
	}
}

// TestPlannerHangs has a program end before its first schedule has come.
func TestPlannerHangs(t *testing.T) {
	planner := filepath.Join(t.TempDir(), "planner")
	if err := os.WriteFile(planner, []byte("#!/bin/sh\nexec sleep 30\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	f, said := newSession(t).same("plain", "auto", "GMSWAP_DEVICE=1000000", "GM_PLANNER="+planner, "LATE=1000")
	if f.Followed != 0 || f.Out == 0 || len(said) != 0 || time.Since(begin) > 25*time.Second {
		t.Errorf("after %v the hook did %+v and said %q", time.Since(begin), f, said)
	}
}
