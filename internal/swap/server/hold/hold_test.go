package hold

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is the holder where the tests start one.
func TestMain(m *testing.M) {
	if Asked(os.Args) {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func FuzzReadRecord(f *testing.F) {
	f.Add(encode(isHeld, &Record{Memory: [16]byte{1}, Bytes: 5, UID: 7, Maker: 9, Key: strings.Repeat("k", 300)}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, r, err := decode(b)
		if err != nil {
			return
		}
		if len(r.Key) > 255 || strings.Contains(r.Key, "\x00") {
			t.Errorf("%+v", r)
		}
		if again, same, err := decode(encode(k, &r)); again != k || same != r || err != nil {
			t.Errorf("%+v became %+v: %v", r, same, err)
		}
	})
}

func TestDecode(t *testing.T) {
	memory := [16]byte{1}
	good := Record{Memory: memory, Bytes: 1, Key: "k"}
	for name, b := range map[string][]byte{
		"empty": nil, "short": encode(toPut, &good)[1:], "kind": encode(kinds, &good), "no kind": encode(0, &good),
		"no number": encode(toPut, &Record{Key: "k", Bytes: 1}),
		"no bytes":  encode(toPut, &Record{Memory: memory, Key: "k"}),
		"no key":    encode(isHeld, &Record{Memory: memory, Bytes: 1}),
		"huge":      encode(toPut, &Record{Memory: memory, Key: "k", Bytes: 1 << 51}),
	} {
		if _, _, err := decode(b); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := decode(encode(toPut, &good)); err != nil {
		t.Error(err)
	}
	other := encode(toPut, &good)
	other[4] = 9
	if _, _, err := decode(other); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
}

// memory returns the descriptor of a file that holds a text.
func memory(t *testing.T, text string) int {
	t.Helper()
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.Pwrite(fd, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
	return fd
}

func holds(t *testing.T, all []Held, want ...string) {
	t.Helper()
	left := map[string]bool{}
	for _, key := range want {
		left[key] = true
	}
	for _, one := range all {
		b := make([]byte, 100)
		n, err := unix.Pread(one.FD, b, 0)
		if err != nil || string(b[:n]) != "contents of "+one.Key || !left[one.Key] {
			t.Errorf("%+v holds %q, %v", one, b[:max(n, 0)], err)
		}
		delete(left, one.Key)
		unix.Close(one.FD)
	}
	if len(left) > 0 {
		t.Errorf("%v are not there", left)
	}
}

func record(key string) *Record {
	return &Record{Memory: [16]byte([]byte(key + strings.Repeat(" ", 16))[:16]), Bytes: 1, Key: key}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not happen", what)
		}
	}
}

// TestHolder has one server after the other use a holder.
func TestHolder(t *testing.T) {
	server := filepath.Join(t.TempDir(), "socket")
	find := func(want ...string) *Holder {
		t.Helper()
		h, all, err := FindHolder(server)
		must(t, err)
		holds(t, all, want...)
		return h
	}
	h := find()
	t.Cleanup(func() { h.End() })
	for _, key := range []string{"a", "b", "c"} {
		must(t, h.Put(record(key), memory(t, "contents of "+key)))
	}
	if info, err := os.Stat(socketOf(server)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	must(t, h.Remove(record("b").Memory))
	h.leave()
	h = find("a", "c")
	must(t, h.Put(record("a"), memory(t, "contents of a"))) // again
	must(t, h.Put(record("d"), memory(t, "contents of d")))
	h.leave()
	h = find("a", "c", "d")
	must(t, h.End())
	if h.Put(record("a"), memory(t, "")) == nil {
		t.Error("a process was started at the end")
	}
	if _, err := os.Stat(socketOf(server)); err == nil {
		t.Error("the socket of the holder is left")
	}
	find()
}

// TestHolderEnds has a holder end by itself: where no server comes, where nothing is held, and after some time.
func TestHolderEnds(t *testing.T) {
	for name, test := range map[string]struct {
		first, alone time.Duration
		act          func(c *net.UnixConn)
	}{
		"no server": {time.Millisecond, time.Hour, nil},
		"nothing":   {time.Hour, time.Hour, func(*net.UnixConn) {}},
		"removed": {time.Hour, time.Hour, func(c *net.UnixConn) {
			must(t, send(c, toPut, record("a"), memory(t, "")))
			must(t, send(c, toRemove, record("a"), -1))
		}},
		"foreign": {time.Hour, time.Hour, func(c *net.UnixConn) {
			_, err := c.Write([]byte("hello"))
			must(t, err)
		}},
		"alone": {time.Hour, time.Millisecond, func(c *net.UnixConn) { must(t, send(c, toPut, record("a"), memory(t, ""))) }},
	} {
		address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"}
		l, err := net.ListenUnix("unixpacket", address)
		must(t, err)
		ended := make(chan struct{})
		go func() {
			(&holder{all: map[[16]byte]Held{}}).serve(l, test.first, test.alone)
			close(ended)
		}()
		if test.act != nil {
			c, err := net.DialUnix("unixpacket", nil, address)
			must(t, err)
			test.act(c)
			must(t, c.Close())
		}
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Errorf("%s: it does not end", name)
		}
		must(t, l.Close())
	}
}

func pipe(t *testing.T, flags int) (from *os.File, to int) {
	t.Helper()
	var both [2]int
	must(t, unix.Pipe2(both[:], flags|unix.O_NONBLOCK))
	from = os.NewFile(uintptr(both[0]), "pipe")
	t.Cleanup(func() { from.Close() })
	return from, both[1]
}

// closesLast closes an end of a pipe, and expects that no other process keeps it open.
func closesLast(t *testing.T, from *os.File, to int) {
	t.Helper()
	must(t, errors.Join(unix.Close(to), from.SetReadDeadline(time.Now().Add(10*time.Second))))
	if _, err := io.ReadAll(from); err != nil {
		t.Error(err)
	}
}

// TestGiveUp has a holder that its server gives up end, though it holds memory and nothing is wrong with it.
func TestGiveUp(t *testing.T) {
	server := filepath.Join(t.TempDir(), "socket")
	h, _, err := FindHolder(server)
	must(t, err)
	from, to := pipe(t, unix.O_CLOEXEC)
	must(t, h.Put(record("a"), to))
	must(t, h.giveUp())
	must(t, h.Put(record("b"), memory(t, "contents of b")))
	closesLast(t, from, to)
	h.leave()
	h, all, err := FindHolder(server)
	must(t, err)
	holds(t, all, "b")
	must(t, h.End())
}

// TestForeignFile leaves what is no socket where that of a holder would be.
func TestForeignFile(t *testing.T) {
	server := filepath.Join(t.TempDir(), "socket")
	must(t, os.WriteFile(socketOf(server), []byte("mine"), 0o600))
	h, all, err := FindHolder(server)
	if err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	for range 2 {
		if err := h.Put(record("a"), memory(t, "")); err == nil || !strings.Contains(err.Error(), "no socket") {
			t.Error(err)
		}
	}
	must(t, h.End())
	if b, err := os.ReadFile(socketOf(server)); string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestEndAfterDeath ends a holder that has ended before, whose socket is there or not.
func TestEndAfterDeath(t *testing.T) {
	for _, remove := range []bool{false, true} {
		server := filepath.Join(t.TempDir(), "socket")
		h, _, err := FindHolder(server)
		must(t, err)
		must(t, h.Put(record("a"), memory(t, "")))
		must(t, h.Remove(record("a").Memory))
		must(t, h.conn.CloseWrite()) // it ends, as it holds nothing
		until(t, "its end", func() bool { return errors.Is(send(h.conn, toTake, &Record{}, -1), unix.EPIPE) })
		if remove {
			must(t, os.Remove(socketOf(server)))
		}
		must(t, h.End())
		if _, err := os.Lstat(socketOf(server)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	}
}

// TestInherited has a holder not keep open what its server has inherited.
func TestInherited(t *testing.T) {
	from, to := pipe(t, 0)
	h, _, err := FindHolder(filepath.Join(t.TempDir(), "socket"))
	must(t, err)
	must(t, h.Put(record("a"), memory(t, "")))
	closesLast(t, from, to)
	must(t, h.End())
}

// TestAwait has a holder end once its path is gone, or another socket's.
func TestAwait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for name, replace := range map[string]func(){"gone": func() {}, "replaced": func() { must(t, os.WriteFile(path, nil, 0o600)) }} {
		socket, file, err := listen(path)
		must(t, err)
		own, err := file.Stat()
		must(t, err)
		ended, served := make(chan struct{}), make(chan struct{})
		go func() {
			await(served, path, own, time.Millisecond)
			close(ended)
		}()
		select {
		case <-ended:
			t.Errorf("%s: it has ended before", name)
		case <-time.After(20 * time.Millisecond):
		}
		must(t, os.Remove(path))
		replace()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Errorf("%s: it does not end", name)
		}
		must(t, errors.Join(socket.Close(), file.Close()))
		_ = os.Remove(path) // where it was replaced
	}
}

// TestAdopt takes what is complete of what systemd passes, and has the rest forgotten.
func TestAdopt(t *testing.T) {
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	must(t, err)
	defer l.Close()
	systemd, err := newSystemd(l.LocalAddr().String())
	must(t, err)
	defer unix.Close(systemd.fd)
	number := func(key string) string { m := record(key).Memory; return hex.EncodeToString(m[:]) }
	copied := func(fd int, err error) int {
		t.Helper()
		must(t, err)
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		must(t, err)
		return fd
	}
	contents := func(key string) int { return copied(memory(t, "contents of "+key), nil) }
	fds := map[string]int{
		recordName + number("whole"): copied(writeRecord(record("whole"))), memoryName + number("whole"): contents("whole"),
		recordName + number("half"): copied(writeRecord(record("half"))), memoryName + number("other"): contents("other"),
		recordName + number("false"): contents("false"), memoryName + number("false"): contents("false"),
		recordName + number("moved"): copied(writeRecord(record("whole"))), memoryName + number("moved"): contents("moved"),
		"stored": contents("stored"),
	}
	all, err := systemd.adopt(fds)
	must(t, err)
	holds(t, all, "whole")
	said := map[string]bool{}
	for range 6 {
		b := make([]byte, 200)
		must(t, l.SetReadDeadline(time.Now().Add(5*time.Second)))
		n, err := l.Read(b)
		must(t, err)
		said[string(b[:n])] = true
	}
	for _, key := range []string{"false", "moved"} {
		for _, name := range []string{memoryName, recordName} {
			if want := "FDSTOREREMOVE=1\nFDNAME=" + name + number(key); !said[want] {
				t.Errorf("%q was not said", want)
			}
		}
	}
}

// TestReceive refuses what is no frame, and leaves no descriptor open.
func TestReceive(t *testing.T) {
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"}
	l, err := net.ListenUnix("unixpacket", address)
	must(t, err)
	defer l.Close()
	from, err := net.DialUnix("unixpacket", nil, address)
	must(t, err)
	to, err := l.AcceptUnix()
	must(t, err)
	defer to.Close()
	fd := memory(t, "")
	_, _, err = from.WriteMsgUnix([]byte("hello"), unix.UnixRights(fd), nil)
	must(t, err)
	_, _, got, err := receive(to)
	if !errors.Is(err, errFrame) {
		t.Errorf("a foreign message: descriptor %d, %v", got, err)
	}
	until(t, "the close of its descriptor", func() bool { return unix.Fstat(got, &unix.Stat_t{}) == unix.EBADF })
	_, _, err = from.WriteMsgUnix(encode(toPut, record("a")), nil, nil)
	must(t, err)
	if _, _, _, err := receive(to); err == nil || !strings.Contains(err.Error(), "did not come") {
		t.Errorf("memory without a descriptor: %v", err)
	}
	must(t, from.Close())
	if _, _, _, err := receive(to); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}
