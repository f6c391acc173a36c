package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gm/internal/capture/ring"
)

// TestDue writes a frame when many slots wait, when something is urgent, or after a while, but none without anything in it.
func TestDue(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		pending, slots int
		urgent         bool
		ago            time.Duration
		want           bool
	}{
		{0, 0, true, 2 * framePeriod, false}, {1, 0, true, 0, true}, {0, 1, true, 0, true}, {1, 0, false, framePeriod - 1, false},
		{1, 0, false, framePeriod, true}, {0, 1, false, framePeriod, true}, {0, frameSlots - 1, false, 0, false}, {0, frameSlots, false, 0, true},
	} {
		j := &journal{pending: make([]byte, c.pending), urgent: c.urgent, written: now.Add(-c.ago)}
		if got := j.due(c.slots, now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestPendingRoom keeps half of the room of messages that cannot be written for those of the program.
func TestPendingRoom(t *testing.T) {
	for _, c := range []struct {
		pending int
		kind    ring.Kind
		want    int
	}{
		{maxFrame / 2, kindSample, messageHead}, {maxFrame/2 + 1, kindSample, 0}, {maxFrame/2 + 1, ring.Alloc, messageHead},
	} {
		j := &journal{pending: make([]byte, c.pending)}
		j.add(&ring.Record{Kind: c.kind})
		if got := len(j.pending) - c.pending; got != c.want {
			t.Errorf("%d bytes behind %d, want %d", got, c.pending, c.want)
		}
	}
}

// TestUrgent writes a record at once to which NVML's figures were added.
func TestUrgent(t *testing.T) {
	for _, kind := range []ring.Kind{ring.Context, ring.Primary} {
		j := &journal{}
		for i, k := range []ring.Kind{ring.Alloc, kind, ring.Alloc} {
			if j.add(&ring.Record{Kind: k}); j.urgent != (i > 0) {
				t.Errorf("%d, record %d: urgent %v", kind, i, j.urgent)
			}
		}
	}
}

// TestMessage reads what was added, and refuses what is cut short.
func TestMessage(t *testing.T) {
	for _, extra := range []int{0, 1, 255} {
		r := ring.Record{Kind: ring.Unknown, TimeNS: 1, A: 2, B: 3, C: 4, D: 5, Caller: 6, Thread: 7, Device: -1, Extra: bytes.Repeat([]byte{8}, extra*extraBytes)}
		j := &journal{}
		j.add(&r)
		var got ring.Record
		rest, err := takeMessage(append(j.pending, 9), &got)
		if err != nil || !bytes.Equal(rest, []byte{9}) || !bytes.Equal(got.Extra, r.Extra) {
			t.Errorf("%d extra slots: %v, rest %v", extra, err, rest)
		}
		got.Extra, r.Extra = nil, nil
		if got.A != 2 || got.B != 3 || got.C != 4 || got.D != 5 || got.Caller != 6 || got.Thread != 7 || got.Device != -1 || got.Kind != r.Kind || got.TimeNS != 1 {
			t.Errorf("%+v, want %+v", got, r)
		}
		if rest, err := takeMessage(j.pending, &got); err != nil || len(rest) != 0 {
			t.Errorf("the last: %v, rest %v", err, rest)
		}
		for _, n := range []int{0, 1, messageHead - 1, len(j.pending) - 1} {
			if _, err := takeMessage(j.pending[:n], &got); err == nil {
				t.Errorf("%d bytes of %d are a message", n, len(j.pending))
			}
		}
	}
}

// TestFrames reads frames up to one that is damaged.
func TestFrames(t *testing.T) {
	first := appendFrame(nil, frameAbout, 0, 0, []byte("first"))
	second := appendFrame(nil, frameMessages, 3, 4, []byte("second"))
	odd := func(at int, b byte) []byte {
		data := bytes.Clone(second)
		data[at] ^= b
		return data
	}
	long := appendFrame(nil, frameEnd, 0, 0, make([]byte, maxFrame+1))
	for name, c := range map[string]struct {
		data []byte
		want int
	}{
		"nothing": {nil, 0}, "two": {append(bytes.Clone(first), second...), 2}, "a head that is cut": {append(bytes.Clone(first), second[:frameHead-1]...), 1},
		"a body that is cut": {append(bytes.Clone(first), second[:len(second)-1]...), 1}, "no frame": {odd(0, 1), 0}, "another kind": {odd(8, 1), 0},
		"another position": {odd(16, 1), 0}, "another sum": {odd(32, 1), 0}, "other content": {odd(frameHead, 1), 0},
		"the longest": {appendFrame(nil, frameEnd, 0, 0, make([]byte, maxFrame)), 1}, "too long": {long, 0},
	} {
		file := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(file, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := openFrames(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; err == nil; n++ {
			_, err = in.next()
		}
		if n-1 != c.want || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d frames, want %d, %v", name, n-1, c.want, err)
		}
		if err := in.close(); err != nil {
			t.Error(err)
		}
	}
	none, err := openFrames(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.next(); !errors.Is(err, io.EOF) || none.close() != nil {
		t.Errorf("no journal: %v", err)
	}
}

// TestFlush writes over the remains of a write that failed.
func TestFlush(t *testing.T) {
	packer, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{name: filepath.Join(t.TempDir(), "journal"), packer: packer}
	for i := range uint64(3) {
		j.add(&ring.Record{Kind: ring.Primary})
		if err := j.flush(i+1, time.Now()); err != nil || j.urgent || len(j.pending) != 0 {
			t.Fatalf("%v, urgent %v, %d bytes pending", err, j.urgent, len(j.pending))
		}
		f, err := os.OpenFile(j.name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(binary.LittleEndian.AppendUint64(nil, frameMagic)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	in, err := openFrames(j.name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	for i, want := range []frame{{frameAbout, 0, 0, nil}, {frameMessages, 0, 1, nil}, {frameMessages, 1, 2, nil}, {frameMessages, 2, 3, nil}} {
		if f, err := in.next(); err != nil || f.kind != want.kind || f.from != want.from || f.to != want.to {
			t.Errorf("frame %d: %+v, %v", i, f, err)
		}
	}
}

// TestOpenRegular opens nothing but files.
func TestOpenRegular(t *testing.T) {
	folder := t.TempDir()
	file, pipe, link := filepath.Join(folder, "file"), filepath.Join(folder, "pipe"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), syscall.Mkfifo(pipe, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{file: true, pipe: false, link: false, folder: false} {
		f, err := openRegular(name)
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if f != nil {
			_ = f.Close()
		}
	}
}

// TestShort notes that a journal is shorter than what was written, and reads what is left.
func TestShort(t *testing.T) {
	for cut, want := range map[int64]bool{0: false, 1: true} {
		p := quiet(t.TempDir())
		p.journal = &journal{name: keptJournal(t, p.folder, false)}
		info, err := os.Stat(p.journal.name)
		if err != nil {
			t.Fatal(err)
		}
		p.journal.size = info.Size()
		p.journal.add(&ring.Record{Kind: ring.HostAlloc, A: 1, B: 1})
		if err := os.Truncate(p.journal.name, info.Size()-cut); err != nil {
			t.Fatal(err)
		}
		r, err := p.replay()
		if err != nil {
			t.Fatal(err)
		}
		rows, err := r.next()
		if err != nil || r.short != want || rows.Len() != 2-int(cut) {
			t.Errorf("%d bytes cut: short %v, %d rows, %v", cut, r.short, rows.Len(), err)
		}
		if _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
}
