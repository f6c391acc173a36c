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

// life is the handle by which a process is known to run.
type life struct {
	pid   int
	fd    int    // a pidfd; -1 when the process is gone, or descriptors are short
	gone  bool   // the process is dead
	since []byte // the process's start time in /proc/PID/stat, where there is no pidfd
	asked time.Time
}

// askPeriod is how often /proc is read for a process without a pidfd.
const askPeriod = 100 * time.Millisecond

// newLife starts watching a process. It leaves half of this process's descriptors for other uses.
func newLife(pid int) life {
	l := life{pid: pid, fd: -1}
	fd, err := unix.PidfdOpen(pid, 0) // since Linux 5.3, and not in every container
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

// dead reports whether the process has ended.
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

// stat returns the state of the process with this PID, and its start time, which distinguishes it from a later process with the same PID.
func (l *life) stat() (state byte, since []byte, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.pid))
	if err != nil {
		return 0, nil, err
	}
	state, since, ok := parseStat(text)
	if !ok {
		return 0, nil, fmt.Errorf("/proc/%d/stat: %q", l.pid, text)
	}
	return state, since, nil
}

// parseStat returns the state and the start time in the text of a process's stat. The name before them may contain anything.
func parseStat(text []byte) (state byte, since []byte, ok bool) {
	const began = 19 // index of the start time, counted from the state
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= began || len(fields[0]) != 1 {
		return 0, nil, false
	}
	return fields[0][0], fields[began], true
}

func (l *life) close() error {
	if l.fd < 0 {
		return nil
	}
	fd := l.fd
	l.fd = -1
	return unix.Close(fd)
}

// closeIf calls close if the process is unneeded.
func (l *life) closeIf(unneeded bool) error {
	if !unneeded {
		return nil
	}
	return l.close()
}
