package wire

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func FuzzMessage(f *testing.F) {
	m := Message{Kind: Report, State: Asleep}
	m.SetName("train")
	m.SetText(strings.Repeat("long", 100))
	m.SetCards(make([]Card, 3))
	f.Add(m.Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		if len(m.CardList()) > MaxCards || len(m.NameText()) > 3*len(m.Name) || strings.ContainsAny(m.TextText()+m.NameText(), "\x00\x1b\n") {
			t.Errorf("%+v", m)
		}
		again, err := Decode(m.Encode())
		if err != nil || again != m {
			t.Errorf("%+v became %+v: %v", m, again, err)
		}
	})
}

func TestDecode(t *testing.T) {
	good := func(change func(m *Message)) []byte {
		m := Message{Kind: Done}
		change(&m)
		return m.Encode()
	}
	other := good(func(*Message) {})
	other[4] = 9
	for name, b := range map[string][]byte{
		"empty": nil, "short": good(func(*Message) {})[:Size-1], "long": append(good(func(*Message) {}), 0),
		"kind": good(func(m *Message) { m.Kind = kinds }), "no kind": good(func(m *Message) { m.Kind = 0 }),
		"state": good(func(m *Message) { m.State = states }), "cards": good(func(m *Message) { m.Count = MaxCards + 1 }),
		"negative": good(func(m *Message) { m.Cards[7].Away = -1 }), "huge": good(func(m *Message) { m.Amount = 1 << 60 }),
	} {
		if _, err := Decode(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Decode(other); !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
}

func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "socket")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil {
		t.Error("two servers listen at one socket")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	client, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	end, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if pid, uid, err := end.Peer(); pid != os.Getpid() || int(uid) != os.Getuid() || err != nil {
		t.Errorf("process %d of user %d, %v", pid, uid, err)
	}
	want := Message{Kind: WantWake, Seq: 7}
	if err := client.Send(&want); err != nil {
		t.Fatal(err)
	}
	if got, err := end.Receive(); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if err := syscall.Sendmsg(client.FD(), []byte("hello"), nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := end.Receive(); !errors.Is(err, ErrMessage) {
		t.Errorf("a foreign message: %v", err)
	}
	awaits(t, client, end)
	client.HangUp()
	if _, err := end.Receive(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); err != io.EOF {
		t.Errorf("a listener that is closed: %v", err)
	}
	if _, err := Dial(path); err == nil {
		t.Error("a socket that is gone was connected to")
	}
}

// awaits has the client wait for a message, and then for its own end.
func awaits(t *testing.T, client, end *Conn) {
	t.Helper()
	memory := [16]byte{1, 2, 3}
	for _, act := range []func(){func() { _ = end.Send(&Message{Kind: End, Memory: memory}) }, client.HangUp} {
		go func() {
			time.Sleep(5 * time.Millisecond)
			act()
		}()
		got, err := client.Await()
		if err == nil && got.Memory == memory {
			continue
		}
		if err != io.EOF {
			t.Errorf("%+v, %v", got, err)
		}
		return
	}
	t.Error("what has hung up still waits")
}

// TestFiles passes descriptors: one arrives, and those of a message with several, or of none that is one, are closed.
func TestFiles(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	from, to := &Conn{pair[0]}, &Conn{pair[1]}
	defer from.Close()
	defer to.Close()
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	m := Message{Kind: Keep, Amount: 5}
	before := files()
	if err := from.SendFile(&m, from.fd); err != nil {
		t.Fatal(err)
	}
	got, fd, err := to.ReceiveFile()
	if err != nil || fd < 0 || got.Amount != 5 || files() != before+1 {
		t.Fatalf("%+v, descriptor %d, %v; %d files, %d before", got, fd, err, files(), before)
	}
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		for _, b := range [][]byte{m.Encode(), []byte("foreign")} {
			var fds []int
			for range n {
				fds = append(fds, from.fd)
			}
			if err := syscall.Sendmsg(from.fd, b, syscall.UnixRights(fds...), nil, 0); err != nil {
				t.Fatal(err)
			}
			_, fd, err := to.ReceiveFile()
			if (err == nil) != (len(b) == Size) || (fd >= 0) != (n == 1 && err == nil) {
				t.Errorf("%d descriptors with %d bytes: %d, %v", n, len(b), fd, err)
			}
			if fd >= 0 {
				syscall.Close(fd)
			}
			if after := files(); after != before {
				t.Errorf("%d descriptors with %d bytes: %d files, %d before", n, len(b), after, before)
			}
		}
	}
	if err := from.Send(&m); err != nil {
		t.Fatal(err)
	}
	if _, fd, err := to.ReceiveFile(); fd >= 0 || err != nil {
		t.Errorf("without a descriptor: %d, %v", fd, err)
	}
}

// TestLeftBehind replaces the socket of a server that was killed, and no other file.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	fd, err := socket()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "socket")
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd)); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file that is no socket: %v", err)
	}
}
