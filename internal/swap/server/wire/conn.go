package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendTime is how long a send waits for the other side to read.
const sendTime = 2 * time.Second

// Path returns the name of the socket where none is given: GM_SERVER, or gmswap.sock in XDG_RUNTIME_DIR, or in /tmp/gm.UID.
func Path() string {
	if path := os.Getenv("GM_SERVER"); path != "" {
		return path
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "gmswap.sock")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("gm.%d", os.Getuid()), "gmswap.sock")
}

// Conn is one end of a connection. One goroutine receives, and closes it at last; any may send, and hang up.
type Conn struct{ fd int }

// Dial connects to a server. It waits as long as a send for one that does not accept.
func Dial(path string) (*Conn, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	c, err := newConn(fd)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the memory server at %s: %w", path, err), c.Close())
	}
	return c, nil
}

func socket() (int, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}

func newConn(fd int) (*Conn, error) {
	t := syscall.NsecToTimeval(int64(sendTime))
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &t); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt", err), syscall.Close(fd))
	}
	return &Conn{fd}, nil
}

// FD is the descriptor of a connection.
func (c *Conn) FD() int { return c.fd }

// Send sends a message.
func (c *Conn) Send(m *Message) error { return c.send(m, nil) }

// SendFile sends a message with a descriptor, which stays the caller's.
func (c *Conn) SendFile(m *Message, fd int) error { return c.send(m, syscall.UnixRights(fd)) }

func (c *Conn) send(m *Message, rights []byte) error {
	b := m.Encode()
	for {
		if err := syscall.Sendmsg(c.fd, b, rights, nil, syscall.MSG_NOSIGNAL); err != syscall.EINTR {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// ReceiveFile is Receive that takes the descriptor of a message; it is -1 if none came. The caller closes it.
func (c *Conn) ReceiveFile() (m Message, fd int, err error) {
	b, rights := make([]byte, Size+1), make([]byte, syscall.CmsgSpace(4)) // the kernel closes what does not fit
	for {
		n, control, _, _, err := syscall.Recvmsg(c.fd, b, rights, syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return Message{}, -1, os.NewSyscallError("recvmsg", err)
		}
		fd = fileIn(rights[:control])
		if n == 0 {
			err = io.EOF
		} else {
			m, err = Decode(b[:n])
		}
		if err != nil && fd >= 0 {
			_ = syscall.Close(fd) // nobody has it
			fd = -1
		}
		return m, fd, err
	}
}

// fileIn returns the descriptor in a control message, -1 if there is none. Several are closed.
func fileIn(control []byte) int {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return -1
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err == nil && len(fds) == 1 {
		return fds[0]
	}
	for _, fd := range fds {
		_ = syscall.Close(fd) // nobody has it
	}
	return -1
}

// Receive waits for a message. At the end it returns io.EOF. Descriptors that come with it are not taken.
func (c *Conn) Receive() (Message, error) {
	b := make([]byte, Size+1)
	for {
		n, err := syscall.Read(c.fd, b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return Message{}, os.NewSyscallError("read", err)
		case n == 0:
			return Message{}, io.EOF
		default:
			return Decode(b[:n])
		}
	}
}

// Await is Receive that takes no thread while it waits, for what may not come for days. Sends no longer wait after it.
func (c *Conn) Await() (Message, error) {
	fd, err := unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Message{}, fmt.Errorf("copy the descriptor of a connection: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return Message{}, errors.Join(os.NewSyscallError("fcntl", err), syscall.Close(fd))
	}
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close()
	b := make([]byte, Size+1)
	n, err := f.Read(b)
	if err != nil {
		return Message{}, err
	}
	return Decode(b[:n])
}

// Expect has Receive fail after a time; 0 ends that.
func (c *Conn) Expect(within time.Duration) error {
	t := syscall.NsecToTimeval(int64(within))
	return os.NewSyscallError("setsockopt", syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &t))
}

// HangUp ends the connection for both sides: Receive returns.
func (c *Conn) HangUp() { _ = syscall.Shutdown(c.fd, syscall.SHUT_RDWR) } // the other side may have done so

// Close closes the connection. Nobody may use it any longer.
func (c *Conn) Close() error { return syscall.Close(c.fd) }

// Peer returns the process and the user at the other end, as the kernel knows them.
func (c *Conn) Peer() (pid int, uid uint32, err error) {
	p, err := syscall.GetsockoptUcred(c.fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, 0, os.NewSyscallError("getsockopt", err)
	}
	return int(p.Pid), p.Uid, nil
}

// Listener is the socket of a server.
type Listener struct {
	fd     int
	path   string
	lock   *os.File
	closed atomic.Bool
}

// Listen makes the socket of a server, in a folder that is made unless it is there, for this user and group. A socket that a server left
// behind is replaced, that of one that runs is not.
func Listen(path string) (*Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of the socket: %w", err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the socket: %w", err)
	}
	l := &Listener{fd: -1, path: path, lock: lock}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}

func (l *Listener) open() error {
	if err := unix.Flock(int(l.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("a memory server runs at %s: %w", l.path, err)
	}
	if info, err := os.Lstat(l.path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return fmt.Errorf("%s is there, and no socket", l.path)
		}
		if err := os.Remove(l.path); err != nil {
			return fmt.Errorf("remove the socket of a server that has ended: %w", err)
		}
	}
	fd, err := socket()
	if err != nil {
		return err
	}
	if err = os.NewSyscallError("bind", syscall.Bind(fd, &syscall.SockaddrUnix{Name: l.path})); err == nil {
		err = os.Chmod(l.path, 0o660)
	}
	if err == nil {
		err = os.NewSyscallError("listen", syscall.Listen(fd, 64))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make the socket %s: %w", l.path, err), syscall.Close(fd))
	}
	l.fd = fd
	return nil
}

// Accept waits for a connection. After Close it returns io.EOF.
func (l *Listener) Accept() (*Conn, error) {
	for {
		fd, _, err := syscall.Accept4(l.fd, syscall.SOCK_CLOEXEC)
		switch {
		case l.closed.Load():
			if err == nil {
				_ = syscall.Close(fd) // its peer finds out
			}
			_ = syscall.Close(l.fd)
			return nil, io.EOF
		case err == nil:
			return newConn(fd)
		case err == syscall.EBADF || err == syscall.EINVAL || err == syscall.ENOTSOCK:
			return nil, os.NewSyscallError("accept", err)
		default: // such as a peer that is gone, or too many descriptors
			time.Sleep(time.Millisecond)
		}
	}
}

// Close removes the socket, once.
func (l *Listener) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	err := os.Remove(l.path)
	return errors.Join(err, os.NewSyscallError("shutdown", syscall.Shutdown(l.fd, syscall.SHUT_RDWR)), l.lock.Close())
}
