package server

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gm/internal/swap/server/hold"
	"gm/internal/swap/server/wire"
)

// keeper is one that fails sometimes.
type keeper struct {
	mu    sync.Mutex
	all   map[[16]byte]*hold.Record
	fails int // so many calls from now on
}

func (k *keeper) Put(r *hold.Record, fd int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.fail(); err != nil {
		return err
	}
	k.all[r.Memory] = r
	return unix.Fstat(fd, &unix.Stat_t{})
}

func (k *keeper) Remove(memory [16]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.fail(); err != nil {
		return err
	}
	delete(k.all, memory)
	return nil
}

// fail loses what is kept, as often as it is to.
func (k *keeper) fail() error {
	if k.fails == 0 {
		return nil
	}
	k.fails--
	clear(k.all)
	return errors.New("it has ended")
}

// keeps returns how many keys are kept, and has the next calls fail.
func (k *keeper) keeps(fails int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fails = fails
	return len(k.all)
}

// shared makes memory of a key.
func shared(t *testing.T, path, key string) {
	t.Helper()
	c, _ := opened(t, path, key)
	if end := keep(t, c, file(t)); end.TextText() != "" {
		t.Fatal(end.TextText())
	}
	c.Close()
}

// TestKeeper has what is shared kept, also after what keeps it has failed.
func TestKeeper(t *testing.T) {
	k := &keeper{all: map[[16]byte]*hold.Record{}}
	s, path := serve(t, Settings{Keeper: k})
	for i, key := range []string{"a", "b", "c"} {
		if n := k.keeps(i % 2); n != i {
			t.Errorf("%d keys are kept before %s", n, key)
		}
		shared(t, path, key)
	}
	if r := s.dropKey("b", 0); r.err != nil || k.keeps(0) != 2 {
		t.Errorf("%d keys are kept after a drop, %v", k.keeps(0), r.err)
	}
	for _, r := range k.all {
		if r.Bytes != 100 || r.Key == "b" || wire.BusOf("0000:1B:00.0") != r.Bus || r.Maker == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestKeeperFails has a drop meet the end of what keeps, which has all again at once, or after further failures with the next key that works.
func TestKeeperFails(t *testing.T) {
	k := &keeper{all: map[[16]byte]*hold.Record{}}
	s, path := serve(t, Settings{Keeper: k})
	for _, key := range []string{"a", "b", "c"} {
		shared(t, path, key)
	}
	k.keeps(1)
	if r := s.dropKey("a", 0); r.err != nil || k.keeps(2) != 2 {
		t.Errorf("%d keys are kept after a drop that was not kept, %v", k.keeps(2), r.err)
	}
	if r := s.dropKey("b", 0); r.err != nil || k.keeps(1) != 0 {
		t.Errorf("%d keys are kept after two failures, %v", k.keeps(1), r.err)
	}
	shared(t, path, "d")
	if n := k.keeps(0); n != 0 {
		t.Errorf("%d keys are kept after three failures", n)
	}
	shared(t, path, "e")
	if n := k.keeps(0); n != 3 {
		t.Errorf("%d keys are kept, want c, d and e", n)
	}
}

// copied returns a descriptor that the server may close.
func copied(t *testing.T) int {
	t.Helper()
	fd, err := unix.FcntlInt(uintptr(file(t)), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestResumeTwice takes over two of the same key: one is closed and kept no longer.
func TestResumeTwice(t *testing.T) {
	k := &keeper{all: map[[16]byte]*hold.Record{}}
	s := New(Settings{Keeper: k}, func(string) {})
	var all []hold.Held
	for n := range byte(3) {
		one := hold.Held{Record: hold.Record{Memory: [16]byte{n + 1}, Bus: [16]byte{n / 2}, Bytes: 5, UID: 1, Key: "key"}, FD: copied(t)}
		k.all[one.Memory] = &one.Record
		all = append(all, one)
	}
	s.Resume(all)
	if _, there := k.all[[16]byte{2}]; there || k.keeps(0) != 2 || len(s.Shares()) != 2 {
		t.Errorf("%+v are kept, %+v shared", k.all, s.Shares())
	}
	for end := time.Now().Add(10 * time.Second); unix.Fstat(all[1].FD, &unix.Stat_t{}) != unix.EBADF; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the second is not closed")
		}
	}
	for _, i := range []int{0, 2} {
		if err := unix.Close(all[i].FD); err != nil {
			t.Errorf("memory %d: %v", i, err)
		}
	}
}

// TestResume takes over memory: its users have time to return, and do not bring it back once it was dropped.
func TestResume(t *testing.T) {
	s := New(Settings{}, func(string) {})
	bus := wire.BusOf("0000:1B:00.0")
	s.Resume([]hold.Held{{Record: hold.Record{Memory: [16]byte{1}, Bus: bus, Bytes: 5, UID: 1, Maker: 7, Key: "key"}, FD: copied(t)}})
	if all := s.Shares(); len(all) != 1 || all[0].PID != 7 || all[0].UID != 1 || all[0].Amount != 0 || all[0].Cards[0].Here != 5 {
		t.Errorf("%+v", all)
	}
	key := shareKey{1, bus, "key"}
	open := func(key shareKey, memory byte, want string) {
		t.Helper()
		sh, fd, err := s.openShare(nil, key, memoryID{memory}, 8)
		if want == "" && (err != nil || fd != hasIt) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d, %v", fd, err)
		}
		if err == nil {
			s.leaveShare(nil, sh)
		}
	}
	open(key, 1, "")
	open(key, 2, "other memory")
	if s.dropUnused(bus) {
		t.Error("it was dropped before its users could return")
	}
	s.shares[key].spared = time.Now().Add(-time.Second)
	if !s.dropUnused(bus) {
		t.Error("it is not dropped")
	}
	open(key, 1, "no longer shared")
	made, _, err := s.openShare(nil, key, memoryID{}, 8)
	if err != nil || made.memory == (memoryID{}) {
		t.Errorf("%+v, %v", made, err)
	}
	if _, _, err := s.openShare(nil, shareKey{2, bus, "key"}, made.memory, 9); err == nil {
		t.Error("a user takes the number of another one's memory")
	}
}
