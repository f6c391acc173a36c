package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// life tells whether a process still runs.
type life struct {
	pid   int
	fd    int  // of the process; -1 when it is gone, or there are no descriptors to spare
	gone  bool // it is dead
	since []byte
	asked time.Time
}

// askPeriod is how often a process without a descriptor is looked for.
const askPeriod = 100 * time.Millisecond

// newLife watches a process. Half of the descriptors that this process may have are left for other things.
func newLife(pid int) life {
	l := life{pid: pid, fd: -1}
	fd, err := unix.PidfdOpen(pid, 0) // of Linux 5.3, and not in every container
	var limit unix.Rlimit
	switch {
	case errors.Is(err, unix.ESRCH):
		l.gone = true
	case err != nil:
	case unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && uint64(fd) >= limit.Cur/2:
		_ = unix.Close(fd)
	default:
		l.fd = fd
	}
	if l.fd < 0 && !l.gone {
		_, l.since, _ = l.stat()
	}
	return l
}

// dead tells whether the process is gone.
func (l *life) dead() bool {
	switch {
	case l.gone:
	case l.fd >= 0:
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}, 0)
		l.gone = err == nil && n == 1
	case time.Since(l.asked) >= askPeriod:
		l.asked = time.Now()
		state, since, err := l.stat()
		l.gone = errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) ||
			err == nil && (state == 'Z' || state == 'X' || l.since != nil && !bytes.Equal(since, l.since))
	}
	return l.gone
}

// stat returns the state of the process of this PID, and when it began, by which it is told from a later one.
func (l *life) stat() (state byte, since []byte, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.pid))
	if err != nil {
		return 0, nil, err
	}
	const began = 19 // fields behind the state
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= began || len(fields[0]) != 1 {
		return 0, nil, fmt.Errorf("/proc/%d/stat: %q", l.pid, text)
	}
	return fields[0][0], fields[began], nil
}

func (l *life) close() error {
	if l.fd < 0 {
		return nil
	}
	fd := l.fd
	l.fd = -1
	return unix.Close(fd)
}

// closeIf closes what nobody is going to need.
func (l *life) closeIf(unneeded bool) error {
	if !unneeded {
		return nil
	}
	return l.close()
}
