package capture

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/capture/ring"
)

// nobody is a PID that no process has.
const nobody = 1 << 23

// emptyRing makes the file of a ring in which nothing was recorded.
func emptyRing(t *testing.T, folder string, pid int) string {
	t.Helper()
	head := []byte("MGTRING2")
	for _, n := range []uint32{2, ring.Slots, uint32(pid), 0, 0, 1} {
		head = binary.LittleEndian.AppendUint32(head, n)
	}
	name := filepath.Join(folder, "ring")
	if err := os.WriteFile(name, head, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 8192+64*ring.Slots); err != nil {
		t.Fatal(err)
	}
	return name
}

// recordInRing puts a record of a kind into the first slot of a ring, and claims two more slots.
func recordInRing(t *testing.T, name string, kind ring.Kind) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var slot []byte
	for _, n := range []uint64{1, 0, 9, 1, 0, 0, 0, uint64(kind) << 48} {
		slot = binary.LittleEndian.AppendUint64(slot, n)
	}
	for at, data := range map[int64][]byte{4096: {3}, 8192: slot} {
		if _, err := f.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
	}
}

// keptJournal makes a journal of one request.
func keptJournal(t *testing.T, folder string, ended bool) string {
	t.Helper()
	packer, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{name: filepath.Join(folder, "journal"), packer: packer, about: ring.Header{PID: nobody, Command: []string{"kept"}}}
	j.add(&ring.Record{Kind: ring.Alloc, TimeNS: 7, A: 1, B: 1})
	if err := j.flush(1, time.Now()); err != nil {
		t.Fatal(err)
	}
	if ended {
		if err := j.end(ring.Counters{Lost: 5}); err != nil {
			t.Fatal(err)
		}
	}
	return j.name
}

// TestRemains says what is made of the files that are left of a ring.
func TestRemains(t *testing.T) {
	for name, c := range map[string]struct {
		journal, ended, ring bool
		pid                  int
		odd                  bool // the file of the ring is none
		lack                 string
		lost, torn           uint64
		err                  string
	}{
		"an ended journal":            {journal: true, ended: true, lost: 5},
		"an ended journal and a ring": {journal: true, ended: true, ring: true, odd: true, lost: 5},
		"a journal":                   {journal: true, lack: "its ring is gone"},
		"a journal and a ring":        {journal: true, ring: true, torn: 2},
		"a ring":                      {ring: true, torn: 2},
		"an odd ring":                 {ring: true, odd: true, err: "open ring"},
		"nothing":                     {err: "it is empty"},
		"of one that runs":            {journal: true, ring: true, pid: os.Getpid(), lack: "it still runs"},
	} {
		folder := t.TempDir()
		r := &remains{pid: cmp.Or(c.pid, nobody)}
		if c.journal {
			r.journal = keptJournal(t, folder, c.ended)
		}
		if c.ring {
			r.ring = emptyRing(t, folder, r.pid)
			recordInRing(t, r.ring, ring.HostAlloc)
		}
		if c.odd {
			if err := os.Truncate(r.ring, 100); err != nil {
				t.Fatal(err)
			}
		}
		s := newSession(Options{Warn: func(string, ...any) {}}, folder)
		err := s.recoverProcess(r)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || len(s.processes) != 0 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(s.processes) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := s.processes[0]
		texts := ""
		for _, l := range p.lacks {
			texts += l.text
		}
		if !strings.Contains(texts, c.lack) || c.lack == "" && texts != "" || p.counters.Lost != c.lost || p.counters.Torn != c.torn || p.interpreter.lastID != 1 {
			t.Errorf("%s: lacks %q, counters %+v, %d requests", name, texts, p.counters, p.interpreter.lastID)
		}
		if command := p.header.Command; c.journal != slices.Equal(command, []string{"kept"}) {
			t.Errorf("%s: command %q", name, command)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRecoverHistory reads the dump that was read last, and those behind it up to one that cannot be read.
func TestRecoverHistory(t *testing.T) {
	for name, c := range map[string]struct {
		taken  string
		dumps  []string
		failed bool
		read   bool // some of it
		lacks  int
	}{
		"nothing":                   {},
		"one":                       {dumps: []string{"small-p2"}, read: true},
		"taken":                     {taken: "small-p2", read: true, lacks: 1},
		"a bad one":                 {dumps: []string{"bad"}, failed: true, lacks: 1},
		"a bad one behind":          {taken: "small-p2", dumps: []string{"bad"}, failed: true, read: true, lacks: 2},
		"a bad one before":          {dumps: []string{"bad", "small-p2"}, failed: true, lacks: 1},
		"one that is gone":          {dumps: []string{"none", "small-p2"}, failed: true, lacks: 1},
		"one that is gone, further": {dumps: []string{"small-p2", "old", "none"}, failed: true, read: true, lacks: 1},
	} {
		p := quiet(t.TempDir())
		if err := os.WriteFile(filepath.Join(p.folder, "bad"), []byte("no pickle"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, dump := range []string{"small-p2", "old"} {
			dumpOf(t, p.folder, dump)
		}
		if c.taken != "" {
			p.taken = filepath.Join(p.folder, c.taken)
		}
		var numbers []int
		for i, dump := range c.dumps {
			p.dumps[i] = filepath.Join(p.folder, dump)
			numbers = append(numbers, i)
		}
		p.recoverHistory(numbers)
		_, read := p.live.framework.Levels(1)[0]
		if (p.failed != nil) != c.failed || p.broken != c.failed || len(p.lacks) != c.lacks || read != c.read {
			t.Errorf("%s: %v, lacks %v, read %v", name, p.failed, p.lacks, read)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSessionFile refuses the description of another version.
func TestSessionFile(t *testing.T) {
	for text, want := range map[string]string{`{"version":1,"pid":7}`: "", `{"version":2}`: "another version", `{`: "session.json"} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, sessionName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		about, err := readSessionFile(folder)
		if want == "" && (err != nil || about.PID != 7) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v", text, about, err)
		}
	}
}

// TestRecoverMoved recovers a folder that was moved, whose description names a place where there is none, or a file.
func TestRecoverMoved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{filepath.Join(t.TempDir(), "none"), file} {
		folder := t.TempDir()
		text := fmt.Sprintf(`{"version":1,"home":%q,"rings":%q}`, home, filepath.Join(folder, "none"))
		if err := os.WriteFile(filepath.Join(folder, sessionName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Recover(folder, t.Logf)
		if err != nil || s.folder != folder {
			t.Fatalf("%s: %v", home, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRecoverable finds what is left of a session, in either of its folders, if it is no older than a day.
func TestRecoverable(t *testing.T) {
	for _, c := range []struct {
		file string
		age  time.Duration
		want bool
	}{
		{"ring.1.2", 0, true}, {"ring.1.2", keptFor + time.Second, false}, {"ring.1.2", keptFor - time.Minute, true}, {"journals/journal.1.2", 0, true},
		{"history.1.0.pickle", 0, true}, {"taken.1.pickle", 0, true}, {"trace-1.2.parquet", 0, true}, {"marks.1", 0, false}, {"journal.1.2", 0, false},
	} {
		temporary, rings := t.TempDir(), t.TempDir()
		home := filepath.Join(temporary, folderPrefix+"1")
		for _, place := range []string{home, rings} {
			file := filepath.Join(place, c.file)
			if err := errors.Join(os.RemoveAll(home), os.MkdirAll(filepath.Join(home, "journals"), 0o700), os.MkdirAll(filepath.Dir(file), 0o700)); err != nil {
				t.Fatal(err)
			}
			about := fmt.Sprintf(`{"version":1,"home":%q,"rings":%q}`, home, rings)
			if err := errors.Join(os.WriteFile(filepath.Join(home, sessionName), []byte(about), 0o600), os.WriteFile(file, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			then := time.Now().Add(-c.age)
			if err := os.Chtimes(file, then, then); err != nil {
				t.Fatal(err)
			}
			if got := Recoverable(temporary); recoverable(home) != c.want || (len(got) == 1) != c.want {
				t.Errorf("%s in %s, %v old: recoverable %v, %q", c.file, place, c.age, recoverable(home), got)
			}
		}
	}
}
