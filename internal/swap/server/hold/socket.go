package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sendTime is how long a send waits for the other side to read. A server does nothing else meanwhile.
	sendTime = 2 * time.Second
	// answerTime is how long a server waits for what its holder has.
	answerTime = 10 * time.Second
)

// socketOf returns the socket of the holder that belongs to a server's socket.
func socketOf(server string) string { return server + ".keys" }

// listen makes the socket of a holder. Own is that which its path leads to.
func listen(path string) (socket, own *os.File, err error) {
	if err := removeSocket(path); err != nil { // of one that has ended
		return nil, nil, err
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, err
	}
	if own, err = os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0); err != nil {
		return nil, nil, err
	}
	if socket, err = l.File(); err != nil {
		return nil, nil, errors.Join(err, own.Close())
	}
	return socket, own, nil
}

// removeSocket removes a socket if there is one, and refuses to remove anything else.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is there, and no socket", path)
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a holder: %w", err)
	}
	return nil
}

// discard closes a foreign file, which may take long. There is nobody to tell if it fails.
func discard(fd int) { go unix.Close(fd) }

// send sends a frame, with a descriptor unless that is -1.
func send(c *net.UnixConn, k kind, r *Record, fd int) error {
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	if err := c.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, _, err := c.WriteMsgUnix(encode(k, r), rights, nil)
	return err
}

// receive waits for a frame. The descriptor that comes with it is the caller's, -1 if there is none.
func receive(c *net.UnixConn) (k kind, r Record, fd int, err error) {
	b, rights := make([]byte, frameSize+1), make([]byte, unix.CmsgSpace(4)) // the kernel closes what does not fit
	n, control, _, _, err := c.ReadMsgUnix(b, rights)
	if err != nil {
		return 0, r, -1, err
	}
	fd = -1
	if messages, err := unix.ParseSocketControlMessage(rights[:control]); err == nil && len(messages) == 1 {
		if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
			fd = fds[0]
		}
	}
	if k, r, err = decode(b[:n]); err == nil && (k == toPut || k == isHeld) && fd < 0 {
		err = errors.New("a descriptor did not come: too many files may be open")
	}
	if err != nil && fd >= 0 {
		discard(fd)
	}
	return k, r, fd, err
}

// checkPeer refuses processes of other users.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if failed != nil {
		return os.NewSyscallError("getsockopt", failed)
	}
	if int(peer.Uid) != os.Getuid() {
		return fmt.Errorf("it is of user %d: %w", peer.Uid, syscall.EACCES)
	}
	return nil
}
