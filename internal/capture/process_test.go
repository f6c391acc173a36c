package capture

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gm/internal/capture/ring"
)

// TestLack warns of each thing that is missing once.
func TestLack(t *testing.T) {
	warned := 0
	p := newProcess(1, t.TempDir(), nil, func(string, ...any) { warned++ })
	for _, what := range []string{"a", "b", "a", "b", "c"} {
		p.lack("%s is missing", what)
	}
	if len(p.lacks) != 3 || warned != 3 || p.lacks[1].text != "b is missing" {
		t.Errorf("%v, %d warnings", p.lacks, warned)
	}
}

// TestNoDump has a dump that is not there end nothing, nor another failure take the place of the first.
func TestNoDump(t *testing.T) {
	missing, known := filepath.Join(t.TempDir(), "dump"), errors.New("as before")
	for _, failed := range []error{nil, known} {
		p := newProcess(1, t.TempDir(), nil, func(string, ...any) {})
		p.failed = failed
		if !p.takeDump(missing) || p.failed != failed || p.nextDump != 1 || len(p.lacks) != 0 {
			t.Errorf("%v: %v, %v", failed, p.failed, p.lacks)
		}
	}
	p := newProcess(1, t.TempDir(), nil, func(string, ...any) {})
	if !p.takeDump(t.TempDir()) || p.failed == nil || errors.Is(p.failed, fs.ErrNotExist) {
		t.Errorf("a folder is a dump: %v", p.failed)
	}
	first := p.failed
	if !p.takeDump(t.TempDir()) || p.failed != first {
		t.Errorf("%v, %v before", p.failed, first)
	}
}

// TestKeep writes the journal when a frame is due and at the end of a ring, but not before the time to try again; at the end the ring goes.
func TestKeep(t *testing.T) {
	now := time.Unix(1000, 0)
	packer, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		retry                time.Duration // from now
		over, due, full      bool
		broken               bool // ring that could not be read
		wrote, ended, remove bool
	}{
		"not due":          {},
		"due":              {due: true, wrote: true},
		"over":             {over: true, wrote: true, ended: true, remove: true},
		"over and due":     {over: true, due: true, wrote: true, ended: true, remove: true},
		"to be tried soon": {retry: 1, over: true, due: true},
		"to be tried now":  {retry: 0, due: true, wrote: true},
		"a full disk":      {due: true, over: true, full: true},
		"no room yet":      {due: true, full: true},
		"a broken ring":    {over: true, broken: true, wrote: true, ended: true},
	} {
		warned := 0
		p := quiet(t.TempDir())
		p.warn = func(string, ...any) { warned++ }
		p.ring, p.ringFile, p.over, p.kept, p.retry = &ring.Ring{}, filepath.Join(p.folder, "ring"), c.over, c.broken, now.Add(c.retry)
		p.journal = &journal{name: filepath.Join(p.folder, "journal"), packer: packer, written: now}
		if err := os.WriteFile(p.ringFile, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.due {
			p.journal.add(&ring.Record{Kind: ring.Primary})
		}
		if c.full {
			p.journal.name = filepath.Join(p.folder, "none", "journal")
		}
		p.keep(now)
		if p.over != c.over {
			t.Errorf("%s: over %v", name, p.over)
		}
		if wrote := p.journal.size > 0; wrote != c.wrote || p.ring == nil != c.ended || exists(p.ringFile) == c.remove || warned > 0 || p.broken {
			t.Errorf("%s: written %v, ended %v, ring is there %v, broken %v, %d warnings", name, wrote, p.ring == nil, exists(p.ringFile), p.broken, warned)
		}
		if later := p.retry.After(now); later != (c.full || c.retry > 0) {
			t.Errorf("%s: to be tried again later: %v", name, later)
		}
	}
}

// TestNow says which clock is a process's.
func TestNow(t *testing.T) {
	p := quiet(t.TempDir())
	if ago := time.Since(time.Unix(0, p.now())); ago.Abs() > time.Minute {
		t.Errorf("%v ago", ago)
	}
	if p.endNS = 5; p.now() != 5 {
		t.Errorf("at %d, ended at 5", p.now())
	}
	p.ring = &ring.Ring{}
	if now := p.now(); now == 5 {
		t.Error("it has a ring, and has ended")
	}
}

// TestPollDumps takes all dumps that follow one another.
func TestPollDumps(t *testing.T) {
	p := quiet(t.TempDir())
	for _, n := range []int{0, 1, 3} {
		p.dumps[n] = filepath.Join(p.folder, "none")
	}
	if p.poll(time.Now()); p.nextDump != 2 || len(p.dumps) != 1 {
		t.Errorf("next dump %d, %d left", p.nextDump, len(p.dumps))
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// TestCount counts what the ring does while there is one.
func TestCount(t *testing.T) {
	p := &process{counters: ring.Counters{Lost: 3}}
	if p.count().Lost != 3 {
		t.Errorf("%+v", p.count())
	}
	if p.ring = new(ring.Ring); p.count().Lost != 0 {
		t.Errorf("%+v", p.count())
	}
}

// TestRead reads a ring while its process lives and it is not over, and to its end when the process is dead.
func TestRead(t *testing.T) {
	packer, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		over, dead, cut bool
		read            bool
		overThen, ended bool
		kept            bool
	}{
		{read: true},
		{dead: true, read: true, overThen: true, ended: true},
		{over: true, overThen: true, ended: true},
		{over: true, dead: true, overThen: true, ended: true},
		{cut: true, overThen: true, ended: true, kept: true},
		{cut: true, dead: true, overThen: true, ended: true, kept: true},
	} {
		p := quiet(t.TempDir())
		file := emptyRing(t, p.folder, 1)
		recordInRing(t, file, ring.Alloc)
		if err := p.open(file, p.folder, 1, packer); err != nil {
			t.Fatal(err)
		}
		if c.cut {
			if err := os.Truncate(file, 0); err != nil {
				t.Fatal(err)
			}
		}
		p.over = c.over
		p.read(c.dead, time.Now())
		read := p.interpreter.lastID == 1
		if read != c.read || p.over != c.overThen || p.ring == nil != c.ended || p.kept != c.kept || p.broken != c.kept {
			t.Errorf("%+v: read %v, over %v, ended %v, kept %v", c, read, p.over, p.ring == nil, p.kept)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}
