package share

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"gm/internal/swap/server/wire"
)

const (
	// pause is how long a process waits before it looks for the next server.
	pause = 200 * time.Millisecond
	// answerTime is how long a server may take to answer. It waits for a process that has the same memory and sends it.
	answerTime = 10 * time.Second
)

// errRefused means that a server does not take the memory.
var errRefused = errors.New("the server does not share it")

// use is the use of frozen memory, of which one server after the other is told until it ends.
type use struct {
	path    string
	request wire.Message // to the next server
	size    int64
	fd      int // of the memory, for a server that has lost it

	mu    sync.Mutex
	conn  *wire.Conn // nil while there is none
	ended bool

	end  chan struct{} // closed to end it
	done chan struct{} // closed once it has ended
}

// begin begins a use of which the server at the other end of a connection knows. The connection is the use's from now on.
func (u *use) begin(conn *wire.Conn) {
	u.end, u.done, u.conn = make(chan struct{}), make(chan struct{}), conn
	go u.follow()
}

// follow stays in touch with the servers, until the memory is closed or no longer shared.
func (u *use) follow() {
	defer close(u.done)
	for {
		_, err := u.conn.Await()
		u.part()
		if err == nil || !u.resume() {
			return
		}
	}
}

// resume waits for the next server, and tells it of the use. It returns false at the end.
func (u *use) resume() bool {
	for {
		select {
		case <-u.end:
			return false
		case <-time.After(pause):
		}
		conn, err := wire.Dial(u.path)
		if err != nil {
			continue
		}
		if !u.meet(conn) {
			_ = conn.Close() // nothing was said
			return false
		}
		if err := u.tell(); err == nil {
			return true
		} else if u.part(); errors.Is(err, errRefused) {
			return false
		}
	}
}

// meet makes a connection the one that close hangs up. It returns false after that.
func (u *use) meet(conn *wire.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.conn = conn
	}
	return !u.ended
}

// part closes the connection.
func (u *use) part() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conn.HangUp() // a forked child may have it open
	_ = u.conn.Close()
	u.conn = nil
}

// tell tells a server which memory is in use, and gives it the memory if it has none of that key.
func (u *use) tell() error {
	if err := errors.Join(u.conn.Expect(answerTime), u.conn.Send(&u.request)); err != nil {
		return err
	}
	answer, err := u.conn.Receive()
	switch {
	case err != nil:
		return err
	case answer.Kind != wire.Given:
		return fmt.Errorf("%w: %s", errRefused, answer.TextText())
	case answer.Amount > 0:
		return nil
	}
	return give(u.conn, u.fd, u.size)
}

// give gives the memory of a key to a server that has asked for it.
func give(conn *wire.Conn, fd int, size int64) error {
	if err := conn.SendFile(&wire.Message{Kind: wire.Keep, Amount: size}, fd); err != nil {
		return err
	}
	answer, err := conn.Receive()
	if err == nil && answer.TextText() != "" {
		err = fmt.Errorf("%w: %s", errRefused, answer.TextText())
	}
	return err
}

// close ends the use.
func (u *use) close() error {
	u.mu.Lock()
	u.ended = true
	if u.conn != nil {
		u.conn.HangUp()
	}
	u.mu.Unlock()
	close(u.end)
	<-u.done
	return syscall.Close(u.fd)
}
