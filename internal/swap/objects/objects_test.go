package objects

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/fake"
	"gm/internal/swap/server"
	"gm/internal/swap/server/wire"
)

const (
	mib      = 1 << 20
	capacity = 1 << 30 // of the fake card
)

func TestMain(m *testing.M) {
	os.Exit(fake.Rerun(m.Run, fmt.Sprint("GM_FAKE_CAPACITY=", capacity), "GM_FAKE_DEVICES=2"))
}

func openDevice(t *testing.T) *driver.Device {
	t.Helper()
	return openOrdinal(t, 0)
}

func openOrdinal(t *testing.T, ordinal int) *driver.Device {
	t.Helper()
	l, err := driver.Load()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := l.Open(ordinal)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(openDevice(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, errClosed) {
			t.Error(err)
		}
	})
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program uses a store, and knows what has to be in its objects.
type program struct {
	t       *testing.T
	store   *Store
	dev     *driver.Device // another one than the store's
	random  *rand.Rand
	streams []cuda.Stream
	objects []*used
	serial  uint32

	failing  bool // calls of the driver may fail
	failures int
}

// failed says whether a call failed, as it may.
func (p *program) failed(err error) bool {
	p.t.Helper()
	if err != nil && !p.failing {
		p.t.Fatal(err)
	}
	if err != nil {
		p.failures++
	}
	return err != nil
}

type used struct {
	id   ID
	at   cuda.Ptr
	size int64
	word uint32
	pins int
	s    cuda.Stream // that it is used in
}

func newProgram(t *testing.T, s *Store, seed uint64) *program {
	p := &program{t: t, store: s, dev: openDevice(t), random: rand.New(rand.NewPCG(seed, 3)), streams: []cuda.Stream{0}}
	for range 2 {
		stream, err := p.dev.StreamCreate()
		check(t, err)
		p.streams = append(p.streams, stream)
	}
	return p
}

func (p *program) stream() cuda.Stream { return p.streams[p.random.IntN(len(p.streams))] }

// sizeOf is a size: of large objects mostly, and of small ones, which lie in trays.
func (p *program) sizeOf() int64 {
	switch p.random.IntN(16) {
	case 0:
		return mib + p.random.Int64N(40*mib) // of two pieces, some
	case 1, 2, 3, 4, 5, 6, 7:
		return mib + p.random.Int64N(8*mib)
	}
	return 4 + p.random.Int64N(1<<p.random.IntN(20))
}

// create makes an object, unless there is no room. It says whether it did.
func (p *program) create() bool {
	o := &used{size: p.sizeOf(), pins: 1, s: p.stream()}
	var err error
	o.id, o.at, err = p.store.Create(o.size, o.s)
	if full := (*FullError)(nil); errors.As(err, &full) {
		return false
	}
	if p.failed(err) {
		return true
	}
	p.objects = append(p.objects, o)
	p.write(o)
	return true
}

// fill makes objects of 16 MiB.
func (p *program) fill(n int) {
	for range n {
		id, at, err := p.store.Create(16*mib, 0)
		check(p.t, err)
		o := &used{id: id, at: at, size: 16 * mib, pins: 1}
		p.objects = append(p.objects, o)
		p.write(o)
	}
}

func (p *program) write(o *used) {
	p.serial++
	o.word = p.serial
	check(p.t, p.dev.MemsetD32Async(o.at, o.word, o.size/4, o.s))
}

// read checks some words of an object in the order of its stream.
func (p *program) read(o *used) {
	p.t.Helper()
	var word [4]byte
	for _, at := range []int64{0, p.random.Int64N(o.size / 4), o.size/4 - 1} {
		if p.failed(p.dev.MemcpyDtoHAsync(word[:], o.at+cuda.Ptr(at*4), o.s)) {
			return
		}
		check(p.t, p.dev.StreamSynchronize(o.s))
		if got := binary.NativeEndian.Uint32(word[:]); got != o.word {
			p.t.Fatalf("object %d of %d bytes holds %d at word %d, want %d", o.id, o.size, got, at, o.word)
		}
	}
}

func (p *program) get(o *used) {
	access, stream := Access(p.random.IntN(2)), p.stream()
	if o.pins > 0 {
		stream = o.s
	}
	at, err := p.store.Get(o.id, access, stream)
	if full := (*FullError)(nil); errors.As(err, &full) {
		p.release()
		return
	}
	if p.failed(err) {
		return
	}
	if at != o.at {
		p.t.Fatalf("object %d is at %#x, and was at %#x", o.id, at, o.at)
	}
	o.s, o.pins = stream, o.pins+1
	p.read(o)
	if access == Write {
		p.write(o)
	}
}

func (p *program) put(o *used) {
	next := int64(Unknown)
	if p.random.IntN(3) > 0 {
		next = p.random.Int64N(1000)
	}
	if !p.failed(p.store.Put(o.id, next, o.s)) {
		o.pins--
	}
}

func (p *program) free(i int) {
	if !p.failed(p.store.Free(p.objects[i].id, p.objects[i].s)) {
		p.objects = slices.Delete(p.objects, i, i+1)
	}
}

// release puts all that is in use.
func (p *program) release() {
	for _, o := range p.objects {
		for o.pins > 0 && p.failures < 500 {
			p.put(o)
		}
	}
}

func (p *program) step() {
	if len(p.objects) == 0 || p.random.IntN(3) == 0 {
		if !p.create() {
			p.release()
		}
		return
	}
	i := p.random.IntN(len(p.objects))
	switch o := p.objects[i]; p.random.IntN(5) {
	case 0:
		p.free(i)
	case 1, 2:
		p.get(o)
	default:
		if o.pins > 0 {
			p.put(o)
		}
	}
}

// TestRandom runs programs in stores that are too small for them, on the card and on the host. What they read is what they wrote; a store takes
// no more than its limit, and nothing is left of it.
func TestRandom(t *testing.T) {
	for seed := range uint64(12) {
		policy := Policy(seed % uint64(policies))
		t.Run(fmt.Sprintf("%v-%d", policy, seed), func(t *testing.T) {
			o := Options{Limit: 48 * mib, Host: 256 * mib, Policy: policy}
			if seed >= 4 {
				o.Host, o.Folder = 48*mib, t.TempDir()
			}
			if seed >= 8 {
				o.Peers, o.PeerLimit = []int{1}, 64*mib
			}
			s := open(t, o)
			p := newProgram(t, s, seed)
			before, _, err := p.dev.MemInfo()
			check(t, err)
			var peer int64
			for range 200 {
				p.step()
				peer = max(peer, s.Stats().Peer)
				if len(s.peers) > 0 && p.random.IntN(8) == 0 {
					_, err := s.giveUp(s.peers[0], p.random.Int64N(32*mib), o.Host, func() {})
					check(t, err)
				}
				if x := s.Stats(); x.Card > o.Limit || x.Pinned > o.Host || x.Objects != int64(len(p.objects)) || s.onPeers() > o.PeerLimit {
					t.Fatalf("%+v", x)
				}
			}
			x := s.Stats()
			if s.peers != nil && peer == 0 || x.Evictions == 0 || x.Fetches == 0 || x.Misses == 0 || o.Folder != "" && x.Spilled == 0 ||
				o.Folder != "" && s.peers == nil && x.Restored == 0 {
				t.Errorf("it was not tried out: %+v", x)
			}
			for len(p.objects) > 0 {
				p.free(0)
			}
			if x := s.Stats(); x.Card != x.Unused || x.Host != 0 || x.File != 0 || x.Peer != 0 {
				t.Errorf("with no object: %+v", x)
			}
			check(t, s.Close())
			if free, _, err := p.dev.MemInfo(); err != nil || free != before || s.onPeers() != 0 {
				t.Errorf("%d of %d bytes are free (%v), and %d of the other GPU taken", free, before, err, s.onPeers())
			}
		})
	}
}

// TestPolicies has a store of five blocks make room for a new object. What was created, and what was put, in which order, decides.
func TestPolicies(t *testing.T) {
	for _, tt := range []struct {
		policy Policy
		size   int64  // of the new object, in MiB
		gone   string // of a to e
	}{
		{LRU, 2, "c"},
		{LRU, 20, "ca"},
		{FIFO, 2, "a"},
		{FIFO, 20, "abc"},
		{SizeLRU, 2, "b"},   // the smallest that will do
		{SizeLRU, 10, "c"},  // of 16, put before d
		{SizeLRU, 40, "ea"}, // the largest, and then the smallest that will do
		{Latency, 2, "e"},   // no next use is known
		{Latency, 40, "ed"},
	} {
		t.Run(fmt.Sprintf("%v-%d", tt.policy, tt.size), func(t *testing.T) {
			var gone []byte
			s := open(t, Options{Limit: 76 * mib, Host: 1 << 30, Policy: tt.policy, Evicted: func(id ID) { gone = append(gone, 'a'+byte(id)-1) }})
			var ids []ID
			for _, size := range []int64{8, 4, 16, 16, 32} {
				id, _, err := s.Create(size*mib, 0)
				check(t, err)
				ids = append(ids, id)
			}
			for _, put := range []struct {
				of   int
				next int64
			}{{2, 30}, {0, 10}, {3, 40}, {1, 20}, {4, Unknown}} {
				check(t, s.Put(ids[put.of], put.next, 0))
			}
			_, _, err := s.Create(tt.size*mib, 0)
			check(t, err)
			if string(gone) != tt.gone {
				t.Errorf("%q leave, want %q", gone, tt.gone)
			}
		})
	}
}

// TestAhead frees memory: what is needed next comes back by itself, and only that for which there is room.
func TestAhead(t *testing.T) {
	s := open(t, Options{Limit: 64 * mib, Host: 1 << 30, Policy: Latency})
	var ids []ID
	for i := range 8 {
		id, _, err := s.Create(16*mib, 0)
		check(t, err)
		ids = append(ids, id)
		check(t, s.Put(id, int64(100-i), 0))
	}
	if x := s.Stats(); x.Evictions != 4 || x.Host != 64*mib {
		t.Fatalf("%+v", x)
	}
	check(t, s.Free(ids[7], 0)) // 4 to 6 are on the card with it; 3 is needed first of the others
	until(t, "an object is fetched ahead", func() bool { return s.Stats().Ahead == 1 })
	before := s.Stats()
	if _, err := s.Get(ids[3], Read, 0); err != nil {
		t.Fatal(err)
	}
	if x := s.Stats(); x.Misses != before.Misses || x.Ahead != 1 {
		t.Errorf("object 3 was away: %+v", x)
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: that does not happen", what)
		}
	}
}

// TestRefused makes calls that are wrong, and calls for which there is no room.
func TestRefused(t *testing.T) {
	if _, err := Open(openDevice(t), Options{Limit: mib, Host: 1 << 30}); err == nil {
		t.Error("a store of less than a page was opened")
	}
	s := open(t, Options{Limit: 32 * mib, Host: 8 * mib})
	id, _, err := s.Create(32*mib, 0)
	check(t, err)
	for _, tt := range []struct {
		call func() error
		want string
	}{
		{func() error { _, _, err := s.Create(0, 0); return err }, "an object of 0 bytes"},
		{func() error { _, _, err := s.Create(1, 0); return err }, "it has 33554432 of 33554432, 33554432 of them in objects that are in use: put some"},
		{func() error { _, err := s.Get(7, Read, 0); return err }, "7 is no object of this store"},
		{func() error { return s.Put(id, 1, 0) }, ""},
		{func() error { return s.Put(id, 1, 0) }, "put object 1: it has been put as often as it was created and got"},
		{func() error { _, _, err := s.Create(1, 0); return err }, "the others cannot leave: host memory is full"},
		{func() error { return s.Free(id, 0) }, ""},
		{func() error { return s.Free(id, 0) }, "1 is no object of this store"},
		{func() error { _, _, err := s.Create(1, 0); return err }, ""},
		{func() error { _, _, err := s.Create(32*mib, 0); return err }, "no room for 33554432 more bytes"},
		{s.Close, ""},
		{s.Close, "closed"},
		{func() error { _, _, err := s.Create(1, 0); return err }, "closed"},
	} {
		if err := tt.call(); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

func serve(t *testing.T) (*server.Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := wire.Listen(path)
	check(t, err)
	s := server.New(server.Settings{Quantum: time.Hour, Host: 1 << 30, Quotas: map[string]int64{"small": 33 * mib}}, func(string) {})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		check(t, l.Close())
		check(t, <-served)
	})
	return s, path
}

// TestServer has two stores on a card: what the first has put leaves for the second, at once, whatever the quantum.
func TestServer(t *testing.T) {
	m, path := serve(t)
	first := open(t, Options{Host: 1 << 30, Server: path, Name: "first"})
	second := open(t, Options{Host: 1 << 30, Server: path, Name: "second"})
	small := open(t, Options{Host: 1 << 30, Server: path, Name: "small"})
	until(t, "all join", func() bool { return len(m.Jobs()) == 3 })
	p, q := newProgram(t, first, 1), newProgram(t, second, 2)
	free, _, err := p.dev.MemInfo()
	check(t, err)
	n := int(free / (16 * mib))
	p.fill(n)
	p.release()
	q.fill(n / 2)
	if x := first.Stats(); x.Host < int64(n/2-1)*16*mib {
		t.Errorf("the first: %+v", x)
	}
	q.release()
	for _, o := range p.objects[:n/2] {
		p.get(o)
	}
	for _, o := range q.objects {
		q.get(o)
		q.release()
	}
	if _, _, err := second.Create(free*3/4, 0); err == nil || !strings.Contains(err.Error(), "put some") {
		t.Errorf("an object for which nothing can leave: %v", err)
	}
	until(t, "the quota", func() bool {
		_, _, err := small.Create(40*mib, 0)
		return err != nil && strings.Contains(err.Error(), "of 33554432")
	})
	for _, job := range m.Jobs() {
		if job.State != wire.Storing || job.Count != 1 {
			t.Errorf("%+v", job)
		}
	}
}
