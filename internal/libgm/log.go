package main

import (
	"fmt"
	"sync"
	"syscall"
	"time"
)

const (
	// linesMax is how many lines are logged at most: an error that recurs with every request must not fill a disk.
	linesMax = 1000
	// settleTime is how long the end of the process waits for what is still to be written.
	settleTime = time.Second
)

// logger writes lines to standard error or to a file, which is opened for the first line. Most callers hold the lock of a device, and a
// terminal may be stopped, so a goroutine writes the lines.
type logger struct {
	path string
	fd   int // 0: not open yet; the goroutine's

	mu      sync.Mutex
	lines   int
	pending []byte
	written chan struct{} // closed when nothing is pending any more; nil if there is no goroutine
}

func (l *logger) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines++; l.lines > linesMax {
		return
	}
	l.pending = fmt.Appendf(l.pending, "gm: "+format+"\n", args...)
	if l.lines == linesMax {
		l.pending = append(l.pending, "gm: more is not logged\n"...)
	}
	if l.written == nil {
		l.written = make(chan struct{})
		go l.write()
	}
}

// write writes what is pending, also what comes meanwhile.
func (l *logger) write() {
	for {
		l.mu.Lock()
		text := l.pending
		l.pending = nil
		if text == nil {
			close(l.written)
			l.written = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if l.fd == 0 {
			l.open()
		}
		// Not through package os, which ends the process when standard error is a pipe without a reader.
		syscall.Write(l.fd, text)
	}
}

// settle waits until all lines are written, for at most settleTime.
func (l *logger) settle() {
	l.mu.Lock()
	written := l.written
	l.mu.Unlock()
	if written == nil {
		return
	}
	select {
	case <-written:
	case <-time.After(settleTime):
	}
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
