package ring

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writer writes a ring as the preload library does.
type writer struct {
	t    *testing.T
	name string
	data []byte
	head uint64
}

func newWriter(t *testing.T) *writer {
	w := &writer{t: t, name: filepath.Join(t.TempDir(), "ring.7.1"), data: make([]byte, fileSize)}
	w.word(0, magic)
	binary.LittleEndian.PutUint32(w.data[offVersion:], version)
	binary.LittleEndian.PutUint32(w.data[offSlots:], slotCount)
	binary.LittleEndian.PutUint32(w.data[offPID:], 7)
	w.word(offStart, uint64(time.Now().UnixNano()))
	w.word(offStartMono, Monotonic())
	copy(w.data[offCommand:], "train\x00--fast\x00")
	return w
}

func (w *writer) word(at int, n uint64) { binary.LittleEndian.PutUint64(w.data[at:], n) }

func (w *writer) slot(position uint64) int { return headerSize + int(position%slotCount)*slotSize }

// push writes a record whose A is its number.
func (w *writer) push(a uint64, extra int) {
	at := w.slot(w.head)
	for i := 1; i <= extra; i++ {
		w.word(w.slot(w.head+uint64(i)), (w.head+uint64(i)+1)|extraFlag)
	}
	w.word(at, w.head+1)
	w.word(at+8, Monotonic())
	w.word(at+16, a)
	w.data[at+62], w.data[at+63] = byte(Alloc), byte(extra)
	w.head += 1 + uint64(extra)
	w.word(offHead, w.head)
}

func (w *writer) open() *Ring {
	w.t.Helper()
	if err := os.WriteFile(w.name, w.data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	r, err := Open(w.name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return r
}

func TestRead(t *testing.T) {
	w := newWriter(t)
	for i := range 100 {
		w.push(uint64(i), i%4)
	}
	r := w.open()
	want := uint64(0)
	visit := func(rec *Record) {
		if rec.A != want || len(rec.Extra) != int(want%4)*extraBytes || rec.TimeNS < r.Header.StartNS || rec.TimeNS > r.Now() {
			t.Errorf("record %d: %+v", want, rec)
		}
		want++
	}
	if err := r.Read(visit); err != nil || want != 100 || r.Pending() != int(w.head) {
		t.Errorf("%d records, %d slots pending, %v", want, r.Pending(), err)
	}
	if r.Free(); r.Pending() != 0 || *r.mapping.word(offTail) != w.head {
		t.Errorf("%d slots pending, the tail is %d", r.Pending(), *r.mapping.word(offTail))
	}
	if r.Header.PID != 7 || len(r.Header.Command) != 2 {
		t.Errorf("header %+v", r.Header)
	}
}

// What is whole is read whatever else the ring holds.
func TestDamage(t *testing.T) {
	const records = 1000
	for name, c := range map[string]struct {
		harm    func(w *writer)
		whole   int
		torn    uint64
		damaged bool // as Read says
	}{
		"nothing":         {func(w *writer) {}, records, 0, false},
		"a head far away": {func(w *writer) { w.word(offHead, 1<<60) }, records, 0, true},
		"a head before":   {func(w *writer) { w.word(offHead, 3) }, records, 0, false},
		"a head of all":   {func(w *writer) { w.word(offHead, 1<<64-1) }, records, 0, true},
		"a tail":          {func(w *writer) { w.word(offTail, 1<<60) }, records, 0, false},
		"no numbers": {func(w *writer) {
			for i := range uint64(10) {
				w.word(w.slot(500+i), 0)
			}
		}, records - 10, 10, false},
		"extra slots that are none": {func(w *writer) { w.data[w.slot(500)+63] = 200 }, records - 1, 0, false},
		"slots of later":            {func(w *writer) { w.word(w.slot(500), 501+slotCount) }, records - 1, 0, false},
		"a thread that gave up":     {func(w *writer) { w.word(offHead, records+7); w.word(offGivenUp, 7) }, records, 0, false},
		"a thread that was ended":   {func(w *writer) { w.word(offHead, records+7); w.word(offGivenUp, 6) }, records, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(t)
			for i := range records {
				w.push(uint64(i), 0)
			}
			c.harm(w)
			r := w.open()
			n := 0
			visit := func(*Record) { n++ }
			if err := r.Read(visit); errors.Is(err, ErrDamaged) != c.damaged {
				t.Errorf("reading: %v", err)
			}
			if err := r.Finish(visit); err != nil || n != c.whole || r.Counters().Torn != c.torn {
				t.Errorf("%d records, want %d; %+v; %v", n, c.whole, r.Counters(), err)
			}
		})
	}
}

// A slot that a thread left unfinished stops the others only until the ring is nearly full.
func TestUnfinished(t *testing.T) {
	w := newWriter(t)
	for i := range slotCount {
		w.push(uint64(i), 0)
	}
	w.word(w.slot(10), 0)
	r := w.open()
	n := 0
	for range 3 {
		if err := r.Read(func(*Record) { n++ }); err != nil {
			t.Fatal(err)
		}
		r.stuck.since = r.stuck.since.Add(-patience)
	}
	if n != slotCount-1 || r.Counters().Torn != 1 {
		t.Errorf("%d records, %+v", n, r.Counters())
	}
}

// A file that is cut short is an error, and no fault.
func TestCutFile(t *testing.T) {
	w := newWriter(t)
	for i := range 1000 {
		w.push(uint64(i), 0)
	}
	for _, size := range []int64{0, headerSize, headerSize + 4096} {
		r := w.open()
		if err := os.Truncate(w.name, size); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := r.Read(func(*Record) { n++ }); !errors.Is(err, ErrCut) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if want := max(size-headerSize, 0) / slotSize; n != int(want) {
			t.Errorf("%d bytes: %d records, want %d", size, n, want)
		}
		if err := r.Finish(func(*Record) {}); !errors.Is(err, ErrCut) {
			t.Errorf("%d bytes: %v", size, err)
		}
		r.Shut()
		r.Counters()
	}
}

// A panic of the one who is told is no damage.
func TestPanicOfOthers(t *testing.T) {
	w := newWriter(t)
	w.push(1, 0)
	r := w.open()
	defer func() {
		if recover() == nil {
			t.Error("a panic is gone")
		}
	}()
	_ = r.Read(func(*Record) { panic("mine") })
}

func TestOpenOthers(t *testing.T) {
	folder := t.TempDir()
	w := newWriter(t)
	w.word(0, 1)
	if err := os.WriteFile(w.name, w.data, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	if err := os.Symlink(w.name, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{w.name, link, folder, filepath.Join(folder, "none"), "/dev/zero"} {
		if r, err := Open(name); err == nil {
			t.Errorf("%s was opened: %+v", name, r.Header)
		}
	}
}

// FuzzRing reads rings with any bytes in them.
func FuzzRing(f *testing.F) {
	f.Add(uint64(1), uint64(5), uint64(0), uint16(3))
	f.Add(uint64(2), uint64(1<<63), uint64(1<<60), uint16(4000))
	f.Fuzz(func(t *testing.T, seed, head, tail uint64, writes uint16) {
		w := newWriter(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		for i := range 2000 {
			w.push(uint64(i), rng.IntN(3)*rng.IntN(100))
		}
		for range writes {
			w.data[headerSize+rng.IntN(len(w.data)-headerSize)] = byte(rng.Uint32())
		}
		w.word(offHead, w.head+head)
		w.word(offTail, tail)
		r := w.open()
		n := 0
		visit := func(rec *Record) {
			if n++; n > 3*slotCount || rec.TimeNS < 0 {
				t.Fatalf("record %d: %+v", n, rec)
			}
		}
		for range 3 {
			_ = r.Read(visit)
			r.Free()
		}
		if err := r.Finish(visit); err != nil {
			t.Fatal(err)
		}
	})
}
