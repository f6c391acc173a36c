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
	// watchedName is the file whose presence tells traced programs that somebody watches.
	watchedName = "live"
	// watchedFor is how long after a question somebody counts as watching.
	watchedFor = 3 * time.Second
	// patience is the timeout of a read or a write.
	patience = 3 * time.Second
)

// Server serves the view of a capture on a socket in the session's folder. A nil Server does nothing.
type Server struct {
	folder   string
	listener *net.UnixListener
	asked    chan chan *View
	done     chan struct{}
	running  sync.WaitGroup
	close    sync.Once
}

// Serve starts a server. The caller must close it.
func Serve(folder string) (*Server, error) {
	var listener *net.UnixListener
	err := inFolder(folder, func(path string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("serve the live view: %w", err)
	}
	listener.SetUnlinkOnClose(false) // the path that it was bound by is valid only within inFolder
	s := &Server{folder: folder, listener: listener, asked: make(chan chan *View), done: make(chan struct{})}
	s.running.Go(s.accept)
	return s, nil
}

// inFolder calls use with a path of the socket that is short enough for a socket's address, however long that of the folder is. The folder
// must belong to this user and not be a link.
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

// checkOwner returns an error if other users can put anything into an open folder.
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

// errForeign means that a folder is not a session's folder of this user.
var errForeign = errors.New("belongs to another user, or others may write to it")

// Answer answers all questions since the last call with what look returns. It does not wait.
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

// Close ends the server. Pending questions stay unanswered.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.close.Do(func() {
		close(s.done)
		_ = s.listener.Close()
		_ = os.Remove(filepath.Join(s.folder, socketName)) // on an error it goes with the folder
		s.running.Wait()
	})
}

// accept accepts connections, and keeps the file that tells traced programs that somebody watches.
func (s *Server) accept() {
	watched := filepath.Join(s.folder, watchedName)
	defer os.Remove(watched)
	for {
		conn, err := s.listener.AcceptUnix()
		switch {
		case err == nil:
			// If the file or its deadline fails, news come less or more often, which does no harm.
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
	_ = json.NewEncoder(conn).Encode(<-reply) // an error means that the client has gone
}
