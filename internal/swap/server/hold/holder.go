package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Holder is the holder of a server's socket, as the server sees it. There is a process once there is something to hold.
type Holder struct {
	server string // the server's socket

	mu    sync.Mutex
	conn  *net.UnixConn // nil while there is no process
	ended bool
}

// FindHolder finds the holder that a former server of a socket has left, and what it holds. The caller is the only server of the socket.
// After an error the Holder is as good as a new one.
func FindHolder(server string) (h *Holder, all []Held, err error) {
	h = &Holder{server: server}
	if err = h.connect(); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return h, nil, nil
	}
	if err == nil {
		all, err = h.take()
	}
	if err != nil {
		err = fmt.Errorf("take over what the holder at %s has: %w", socketOf(server), errors.Join(err, h.giveUp()))
	}
	return h, all, err
}

func (h *Holder) connect() error {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socketOf(h.server), Net: "unixpacket"})
	if err != nil {
		return err
	}
	h.conn = c
	return checkPeer(c)
}

// take asks for all that is held.
func (h *Holder) take() (all []Held, err error) {
	defer func() {
		if err != nil {
			closeAll(all)
			all = nil
		}
	}()
	if err := send(h.conn, toTake, &Record{}, -1); err != nil {
		return nil, err
	}
	for len(all) < maxHeld {
		if err := h.conn.SetReadDeadline(time.Now().Add(answerTime)); err != nil {
			return all, err
		}
		k, r, fd, err := receive(h.conn)
		switch {
		case err != nil:
			return all, err
		case k == isAll:
			return all, nil
		case k != isHeld:
			return all, errFrame
		}
		all = append(all, Held{r, fd})
	}
	return all, nil
}

func closeAll(all []Held) {
	for _, one := range all {
		discard(one.FD)
	}
}

// Put has memory held. The descriptor stays the caller's. After an error the process ends, and the next Put starts another one, which has
// nothing yet.
func (h *Holder) Put(r *Record, fd int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return fmt.Errorf("have %s held: the server ends", r.Key)
	}
	if h.conn == nil {
		if err := h.start(); err != nil {
			_ = h.giveUp() // start has told what is wrong with the socket
			return fmt.Errorf("start a process that holds %s: %w", r.Key, err)
		}
	}
	if err := send(h.conn, toPut, r, fd); err != nil {
		return fmt.Errorf("have %s held: %w", r.Key, errors.Join(err, h.giveUp()))
	}
	return nil
}

// Remove has memory held no longer. An error is that of Put.
func (h *Holder) Remove(memory [16]byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn == nil {
		return nil
	}
	if err := send(h.conn, toRemove, &Record{Memory: memory}, -1); err != nil {
		return fmt.Errorf("have memory held no longer: %w", errors.Join(err, h.giveUp()))
	}
	return nil
}

// End has nothing held any longer, and the process end, which it may have done.
func (h *Holder) End() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.conn == nil {
		return nil
	}
	err := send(h.conn, toClear, &Record{}, -1)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	if err = errors.Join(err, h.giveUp()); err != nil {
		return fmt.Errorf("end the process that holds what is shared: %w", err)
	}
	return nil
}

// leave leaves a process to itself.
func (h *Holder) leave() {
	if h.conn != nil {
		_ = h.conn.Close() // all was sent, or will not be
		h.conn = nil
	}
}

// giveUp leaves a process of which no server will hear again. It ends, as it finds that its socket is gone.
func (h *Holder) giveUp() error {
	h.leave()
	return removeSocket(socketOf(h.server))
}

// start starts a process, which neither signals to this one's group nor its end reach, and which keeps none of its files open.
func (h *Holder) start() error {
	socket, own, err := listen(socketOf(h.server))
	if err != nil {
		return err
	}
	defer socket.Close()
	defer own.Close()
	path, err := filepath.Abs(h.server)
	if err != nil {
		return err
	}
	if err := keepFiles(); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", Word, path) // also where the file was replaced
	cmd.Args[0] = os.Args[0]
	cmd.Dir, cmd.ExtraFiles, cmd.SysProcAttr = "/", []*os.File{socket, own}, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait()
	return h.connect()
}

// keepFiles has no process inherit descriptors that this one has inherited, such as a shell's pipes and locks.
func keepFiles() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
