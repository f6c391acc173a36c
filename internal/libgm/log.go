package main

import (
	"fmt"
	"sync"
	"syscall"
)

// linesMax is how many lines are logged at most: an error that comes back with every request must not fill a disk.
const linesMax = 1000

// logger writes lines to standard error or to a file, which is opened for the first of them.
type logger struct {
	path  string
	mu    sync.Mutex
	fd    int // 0: not open yet
	lines int
}

func (l *logger) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines++; l.lines > linesMax {
		return
	}
	if l.fd == 0 {
		l.open()
	}
	text := fmt.Sprintf("gm: "+format+"\n", args...)
	if l.lines == linesMax {
		text += "gm: more is not logged\n"
	}
	// Not through package os, which ends the process when standard error is a pipe that nobody reads.
	syscall.Write(l.fd, []byte(text))
}

func (l *logger) open() {
	l.fd = syscall.Stderr
	if l.path == "" {
		return
	}
	fd, err := syscall.Open(l.path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		syscall.Write(l.fd, fmt.Appendf(nil, "gm: GM_LOG=%s: %v\n", l.path, err))
		return
	}
	l.fd = fd
}
