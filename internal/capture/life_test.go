package capture

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNewLife watches a process by a descriptor, but leaves half of the descriptors for other uses.
func TestNewLife(t *testing.T) {
	if l := newLife(nobody); !l.gone || l.fd >= 0 || l.since != nil || !l.dead() || l.close() != nil {
		t.Errorf("nobody: %+v", l)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Skipf("no descriptors of processes: %v", err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	for limit, watched := range map[int]bool{2 * fd: false, 2*fd + 2: true} {
		few := before
		few.Cur = uint64(limit)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		l := newLife(os.Getpid())
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if (l.fd >= 0) != watched || (l.since == nil) != watched || l.dead() {
			t.Errorf("limit %d, descriptor %d before: %+v", limit, fd, l)
		}
		if err := l.close(); err != nil || l.fd >= 0 {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// TestAskPeriod reads /proc no more often than so.
func TestAskPeriod(t *testing.T) {
	l := life{pid: nobody, fd: -1, asked: time.Now().Add(time.Hour)}
	if l.dead() {
		t.Error("asked again at once")
	}
	if l.asked = time.Now().Add(-askPeriod); !l.dead() {
		t.Error("nobody lives")
	}
}

// TestCloseIf closes what is not needed.
func TestCloseIf(t *testing.T) {
	l := newLife(os.Getpid())
	fd := l.fd
	if err := l.closeIf(false); err != nil || l.fd != fd {
		t.Errorf("needed: %+v, %v", l, err)
	}
	if err := l.closeIf(true); err != nil || l.fd >= 0 {
		t.Errorf("not needed: %+v, %v", l, err)
	}
}

// TestParseStat reads the state and the start of a process, whatever its name is, and refuses what is cut short.
func TestParseStat(t *testing.T) {
	const numbers = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"
	for text, want := range map[string]string{
		"7 (a) S" + numbers + " 99": "S 99", "7 (a) b) c) Z" + numbers + " 99 100\n": "Z 99", "7 (a) S" + numbers: "", "7 (a) SS" + numbers + " 99": "", "": "",
	} {
		got := ""
		if state, since, ok := parseStat([]byte(text)); ok {
			got = string(state) + " " + string(since)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
