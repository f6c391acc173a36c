package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// systemd is a fake of what systemd is to a service that notifies: a store of files.
type systemd struct {
	t      *testing.T
	socket *net.UnixConn
	store  string // what it says of its store

	mu    sync.Mutex
	names []string
	files []*os.File
	ready int // how often a server said that it is
}

func newSystemd(t *testing.T) *systemd {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	must(t, err)
	d := &systemd{t: t, socket: socket, store: "FDSTORE=512"}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.receive()
	}()
	t.Cleanup(func() {
		socket.Close()
		<-ended
		for _, f := range d.files {
			f.Close()
		}
	})
	return d
}

func (d *systemd) receive() {
	for {
		b, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*10))
		n, control, _, _, err := d.socket.ReadMsgUnix(b, rights)
		if err != nil {
			return
		}
		d.hear(strings.Split(string(b[:n]), "\n"), rights[:control])
	}
}

// hear does what a message says.
func (d *systemd) hear(lines []string, rights []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := ""
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "FDNAME="); ok {
			name = text
		}
	}
	if len(name) > 255 || strings.ContainsAny(name, ":\n") {
		d.t.Errorf("systemd refuses the name %q", name)
	}
	switch {
	case slices.Contains(lines, "READY=1"):
		d.ready++
	case slices.Contains(lines, "FDSTORE=1"):
		messages, err := unix.ParseSocketControlMessage(rights)
		if err != nil || len(messages) != 1 {
			d.t.Errorf("%q with %d messages, %v", lines, len(messages), err)
			return
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		for _, fd := range fds {
			d.names, d.files = append(d.names, name), append(d.files, os.NewFile(uintptr(fd), name))
		}
		if err != nil {
			d.t.Error(err)
		}
	case slices.Contains(lines, "FDSTOREREMOVE=1"):
		for i := len(d.names) - 1; i >= 0; i-- {
			if d.names[i] == name {
				d.files[i].Close()
				d.names, d.files = slices.Delete(d.names, i, i+1), slices.Delete(d.files, i, i+1)
			}
		}
	default:
		d.t.Errorf("systemd does not know %q", lines)
	}
}

// stored returns how many files are stored.
func (d *systemd) stored() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.files)
}

// start starts a server as systemd would, with all that is stored, once that are so many files.
func (d *systemd) start(s *served, stored int) {
	s.t.Helper()
	until(s.t, "the store of what was shared", func() bool { return d.stored() == stored })
	d.mu.Lock()
	before := d.ready
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ SYSTEMD_EXEC_PID=$$ exec "$0" "$@"`, os.Args[0], "serve", "--host", "1G", "--socket", s.path)
	cmd.ExtraFiles = slices.Clone(d.files)
	environment := append(os.Environ(), d.store, "NOTIFY_SOCKET="+d.socket.LocalAddr().String(),
		"LISTEN_FDS="+strconv.Itoa(len(d.files)), "LISTEN_FDNAMES="+strings.Join(d.names, ":"))
	d.mu.Unlock()
	must(s.t, s.run(cmd, environment))
	until(s.t, "READY=1", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.ready == before+1
	})
}
