package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	socketName = "live.sock"
	// watchedName is the file by which traced programs know that somebody watches.
	watchedName = "live"
	// watchedFor is how long somebody who has asked is held to be watching.
	watchedFor = 3 * time.Second
	// patience is how long the other side may take for what is written to it, or is to be read of it.
	patience = 3 * time.Second
)

// Server answers, on a socket in the folder of a session, what the capture knows. A nil Server serves nobody.
type Server struct {
	folder   string
	listener *net.UnixListener
	asked    chan chan *View
	done     chan struct{}
	running  sync.WaitGroup
	close    sync.Once
}

// Serve starts a server, which must be closed.
func Serve(folder string) (*Server, error) {
	var listener *net.UnixListener
	err := inFolder(folder, func(path string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("serve the live view: %w", err)
	}
	listener.SetUnlinkOnClose(false) // its name ends with inFolder
	s := &Server{folder: folder, listener: listener, asked: make(chan chan *View), done: make(chan struct{})}
	s.running.Go(s.accept)
	return s, nil
}

// inFolder calls use with a path of the socket in a folder that is short, as those of sockets have to be. The folder must be one of this
// user, and no link.
func inFolder(folder string, use func(path string) error) error {
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: folder, Err: err}
	}
	if err := checkOwner(fd, folder); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	return errors.Join(use(fmt.Sprintf("/proc/self/fd/%d/%s", fd, socketName)), unix.Close(fd))
}

// checkOwner makes sure that an open folder is one that others cannot put anything into.
func checkOwner(fd int, folder string) error {
	var stat unix.Stat_t
	switch err := unix.Fstat(fd, &stat); {
	case err != nil:
		return &os.PathError{Op: "stat", Path: folder, Err: err}
	case int(stat.Uid) != os.Geteuid() || stat.Mode&0o022 != 0:
		return fmt.Errorf("%s: %w", folder, errForeign)
	}
	return nil
}

// errForeign means that a folder is not one of a session of this user.
var errForeign = errors.New("belongs to another user, or others may write to it")

// Answer answers those who have asked since the last time, with what look returns. It does not wait.
func (s *Server) Answer(look func() *View) {
	if s == nil {
		return
	}
	var view *View
	for {
		select {
		case reply := <-s.asked:
			if view == nil {
				view = look()
			}
			reply <- view
		default:
			return
		}
	}
}

// Close ends the server. Those who still wait are not answered.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.close.Do(func() {
		close(s.done)
		_ = s.listener.Close()
		_ = os.Remove(filepath.Join(s.folder, socketName)) // it is of no use any more, and goes with the folder at last
		s.running.Wait()
	})
}

// accept takes connections, and tells traced programs whether somebody watches.
func (s *Server) accept() {
	watched := filepath.Join(s.folder, watchedName)
	defer os.Remove(watched)
	for {
		conn, err := s.listener.AcceptUnix()
		switch {
		case err == nil:
			// Without the file, or the deadline by which it goes, news come later or oftener. Neither is wrong.
			_ = os.WriteFile(watched, nil, 0o600)
			_ = s.listener.SetDeadline(time.Now().Add(watchedFor))
			s.running.Go(func() { s.answer(conn) })
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = os.Remove(watched)
			_ = s.listener.SetDeadline(time.Time{})
		default:
			return
		}
	}
}

// answer answers one connection.
func (s *Server) answer(conn *net.UnixConn) {
	defer conn.Close()
	reply := make(chan *View, 1)
	select {
	case s.asked <- reply:
	case <-s.done:
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	_ = json.NewEncoder(conn).Encode(<-reply) // who has gone away misses nothing
}
