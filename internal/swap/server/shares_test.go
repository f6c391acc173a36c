package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gm/internal/swap/server/wire"
)

// TestShares bounds the keys of a user, and keeps users and cards apart.
func TestShares(t *testing.T) {
	s := New(Settings{}, func(string) {})
	bus := wire.BusOf("0000:1B:00.0")
	for n := range maxShares {
		if _, fd, err := s.openShare(nil, shareKey{1, bus, fmt.Sprint(n)}, memoryID{}, 7); fd != toMake || err != nil {
			t.Fatalf("key %d: %d, %v", n, fd, err)
		}
	}
	if _, _, err := s.openShare(nil, shareKey{1, bus, "one more"}, memoryID{}, 7); err == nil {
		t.Error("the keys of a user have no bound")
	}
	for _, key := range []shareKey{{2, bus, "0"}, {2, wire.BusOf("0000:1C:00.0"), "0"}} {
		if _, fd, err := s.openShare(nil, key, memoryID{}, 7); fd != toMake || err != nil {
			t.Errorf("%v is not apart from others: %d, %v", key, fd, err)
		}
	}
	if all := s.Shares(); len(all) > 0 {
		t.Errorf("%d keys are listed before they have memory", len(all))
	}
}

// TestConnections bounds those of a user.
func TestConnections(t *testing.T) {
	s := New(Settings{}, func(string) {})
	for range maxOfUser {
		if !s.enter(1) {
			t.Fatal("refused too early")
		}
	}
	if s.enter(1) || !s.enter(2) {
		t.Error("a user can take all connections, or takes those of others")
	}
	if s.leave(1); !s.enter(1) {
		t.Error("a connection that has ended is not free")
	}
}

// opened connects and opens a key.
func opened(t *testing.T, path, key string) (*wire.Conn, wire.Message) {
	t.Helper()
	c, err := wire.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	m := wire.Message{Kind: wire.Open}
	m.SetText(key)
	m.SetCards([]wire.Card{{Bus: wire.BusOf("0000:1B:00.0")}})
	if err := c.Send(&m); err != nil {
		t.Fatal(err)
	}
	answer, fd, err := c.ReceiveFile()
	if err != nil {
		t.Fatal(err)
	}
	if fd >= 0 {
		unix.Close(fd)
	}
	if (fd >= 0) != (answer.Amount > 0) {
		t.Fatalf("%d bytes with descriptor %d", answer.Amount, fd)
	}
	return c, answer
}

// file returns a descriptor that could be one of memory.
func file(t *testing.T) int {
	t.Helper()
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func keep(t *testing.T, c *wire.Conn, fd int) wire.Message {
	t.Helper()
	if err := c.SendFile(&wire.Message{Kind: wire.Keep, Amount: 100}, fd); err != nil {
		t.Fatal(err)
	}
	answer, err := c.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestUnusedGoesFirst has a job need room: what is shared and not in use goes, and what is in use stays. No job is put to sleep for it.
func TestUnusedGoesFirst(t *testing.T) {
	s, path := serve(t, Settings{Quantum: time.Hour, Host: 1000})
	for _, key := range []string{"used", "unused"} {
		c, answer := opened(t, path, key)
		if answer.Kind != wire.Given || answer.Amount > 0 {
			t.Fatalf("%s: %+v", key, answer)
		}
		if end := keep(t, c, file(t)); end.TextText() != "" {
			t.Fatal(end.TextText())
		}
		if key == "unused" {
			c.Close()
		} else {
			defer c.Close()
		}
	}
	for end := time.Now().Add(10 * time.Second); s.Shares()[0].Amount > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	idle := &program{t: t, card: &card{capacity: 100, bus: wire.BusOf("0000:1B:00.0")}, want: 60, idle: true}
	busy := &program{t: t, card: idle.card, want: 60}
	run(s, path, []*program{idle, busy}, 800*time.Millisecond)
	if all := s.Shares(); len(all) != 1 || all[0].TextText() != "used" {
		t.Errorf("%d keys are left", len(all))
	}
	if idle.away > 0 || busy.away > 0 {
		t.Errorf("%d and %d bytes of jobs went as well", idle.away, busy.away)
	}
}

// FuzzKeep has a client send anything after it has opened a key, with descriptors of several kinds. The server goes on, and the key is free or
// has memory.
func FuzzKeep(f *testing.F) {
	good := wire.Message{Kind: wire.Keep, Amount: 1}
	f.Add(good.Encode(), uint8(0))
	f.Add(good.Encode(), uint8(1))
	f.Add(good.Encode(), uint8(2))
	f.Add([]byte("x"), uint8(0))
	f.Add((&wire.Message{Kind: wire.Open}).Encode(), uint8(0))
	f.Add([]byte{}, uint8(1))
	s := New(Settings{}, func(string) {})
	path := filepath.Join(f.TempDir(), "socket")
	l, err := wire.Listen(path)
	if err != nil {
		f.Fatal(err)
	}
	go s.Serve(l)
	f.Cleanup(func() { l.Close() })
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		if len(b) > 2*wire.Size {
			return
		}
		c, _ := opened(t, path, "key")
		fd := file(t)
		if kind%3 == 1 {
			fd = c.FD()
		}
		rights := unix.UnixRights(fd)
		if kind%3 == 2 {
			rights = unix.UnixRights(fd, fd, fd)
		}
		_ = unix.Sendmsg(c.FD(), b, rights, nil, unix.MSG_NOSIGNAL) // the server may have hung up
		c.Close()
		next, answer := opened(t, path, "key")
		next.Close()
		if answer.Kind != wire.Given || answer.Amount > 0 && kind%3 != 0 {
			t.Fatalf("%+v after descriptors of kind %d", answer, kind%3)
		}
		s.mu.Lock()
		for _, sh := range s.shares {
			if sh.fd >= 0 {
				s.drop(sh)
			}
		}
		s.mu.Unlock()
	})
}

// TestForeignFiles refuses descriptors that are none of memory.
func TestForeignFiles(t *testing.T) {
	_, path := serve(t, Settings{})
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for name, fd := range map[string]int{"folder": int(folder.Fd()), "socket": -1} {
		c, _ := opened(t, path, name)
		if fd < 0 {
			fd = c.FD()
		}
		if end := keep(t, c, fd); !strings.Contains(end.TextText(), "not that of memory") {
			t.Errorf("%s: %q", name, end.TextText())
		}
		c.Close()
	}
}
