package capture

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

func TestDaytime(t *testing.T) {
	const start = int64(1_700_000_000) * int64(time.Second)
	hour := int64(time.Hour)
	for name, c := range map[string]struct {
		day  []int64 // at each second of the monotonic clock, less what that says
		want []time.Duration
	}{
		"steady":           {[]int64{0, 0, 0}, []time.Duration{0, 0, 0}},
		"steered":          {[]int64{0, 500_000, -500_000}, []time.Duration{0, 0, 0}},
		"back":             {[]int64{0, 0, -hour, -hour}, []time.Duration{0, 0, -time.Hour, 0}},
		"forward and back": {[]int64{0, hour, 0}, []time.Duration{0, time.Hour, -time.Hour}},
	} {
		var d daytime
		var got []time.Duration
		for i, offset := range c.day {
			now := int64(i) * int64(time.Second)
			got = append(got, d.look(start+now+offset, now))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A clock that is set while a session records is told of, in each trace as well.
func TestClockIsSet(t *testing.T) {
	var warnings []string
	s := newSession(Options{Warn: func(format string, args ...any) { warnings = append(warnings, format) }}, t.TempDir())
	s.processes = []*process{newProcess(1, s.folder, &cards{}, t.Logf)}
	s.watchClock()
	s.daytime.offset += int64(time.Hour)
	s.watchClock()
	s.watchClock()
	notes := s.processes[0].notes
	if len(warnings) != 1 || len(notes) != 1 || notes[0].text != "clock set back by 1h0m0s" {
		t.Errorf("%d warnings, notes %v", len(warnings), notes)
	}
}

// TestMostNotes notes so many settings of the clock in a trace, and none in that of a process that has ended.
func TestMostNotes(t *testing.T) {
	s := newSession(Options{Warn: func(string, ...any) {}}, t.TempDir())
	s.processes = []*process{quiet(s.folder), quiet(s.folder)}
	s.processes[1].life.gone = true
	s.processes[0].notes = make([]mark, maxNotes-1)
	s.watchClock()
	for range 2 {
		s.daytime.offset += int64(time.Hour)
		s.watchClock()
	}
	if lives, ended := len(s.processes[0].notes), len(s.processes[1].notes); lives != maxNotes || ended != 0 {
		t.Errorf("%d notes, %d of a process that has ended", lives, ended)
	}
}

// Where the time of day jumps about, the times of a trace go on.
func TestTimesGoOn(t *testing.T) {
	jump := compileHere(t, "jump.so", "jump.c", "-shared", "-fPIC")
	c := run(t, Options{}, []string{"LD_PRELOAD=" + jump}, "driver", "linked", "linked", "linked", "pools")
	c.check(t)
	rows := c.traces[0].rows
	same := 0
	for i, e := range rows[1:] {
		if e.TimeNS == rows[i].TimeNS {
			same++
		}
	}
	took := time.Duration(rows[len(rows)-1].TimeNS - rows[0].TimeNS)
	if now := time.Now(); took > time.Minute || same > len(rows)/2 || now.Sub(time.Unix(0, rows[0].TimeNS)).Abs() > 2*time.Hour {
		t.Errorf("%v for %d rows, %d of which have the time of the one above", took, len(rows), same)
	}
	if len(c.warnings) > 0 && !slices.ContainsFunc(c.warnings, func(w string) bool { return strings.Contains(w, "the whole card") }) {
		t.Errorf("warnings %q", c.warnings)
	}
}

// Times that cannot be are replaced, and no other row with them.
func TestOddTimes(t *testing.T) {
	out := newRows()
	in := newInterpreter(&out, noCards{})
	for i, at := range []int64{100, 200, 150, 300} { // threads take their times before their turns
		in.take(&ring.Record{Kind: ring.Alloc, TimeNS: at, A: uint64(i + 1), B: 1})
	}
	if want := []int64{100, 200, 200, 300}; !slices.Equal(out.batch.TimeNS, want) {
		t.Errorf("times %v, want %v", out.batch.TimeNS, want)
	}
	if err := (&trace.Validator{}).Check(&out.batch); err != nil {
		t.Error(err)
	}
}
