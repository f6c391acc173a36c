package hold

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The names of descriptors in systemd's store begin with these words and go on with the memory's number. A name is too short for a record,
// which therefore is a file of its own. No user chooses a name, so that no memory can pass for a record.
const (
	memoryName = "gm-memory-"
	recordName = "gm-record-"
)

// Systemd is the service manager that has started this process.
type Systemd struct {
	fd     int    // a socket
	path   string // of systemd's
	stores bool   // it has a store for this service, as versions from 254 on say
}

// FindSystemd returns nil where the process was not started as a service that notifies. What the service's former process has stored is
// returned as well.
func FindSystemd() (s *Systemd, all []Held, err error) {
	path, pid := os.Getenv("NOTIFY_SOCKET"), os.Getenv("SYSTEMD_EXEC_PID")
	if path == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) { // a service that has started this process has the variables, too
		return nil, nil, nil
	}
	if s, err = newSystemd(path); err != nil {
		return nil, nil, fmt.Errorf("make a socket for systemd: %w", err)
	}
	most, _ := strconv.Atoi(os.Getenv("FDSTORE")) // what is no number is no store
	if s.stores = most > 0; s.stores {
		all, err = s.adopt(passed())
	}
	for _, name := range []string{"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "FDSTORE"} {
		err = errors.Join(err, os.Unsetenv(name))
	}
	return s, all, err
}

// Stores says whether the service has a store. Without one, what is put is lost.
func (s *Systemd) Stores() bool { return s.stores }

func newSystemd(path string) (*Systemd, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	t := unix.NsecToTimeval(int64(sendTime))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &t); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &Systemd{fd: fd, path: path}, nil
}

// passed returns the descriptors that systemd has passed to this process, by name.
func passed() map[string]int {
	pid, err := strconv.Atoi(os.Getenv("LISTEN_PID"))
	if err != nil || pid != os.Getpid() {
		return nil
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil {
		return nil
	}
	const first = 3
	fds := map[string]int{}
	for i, name := range strings.Split(os.Getenv("LISTEN_FDNAMES"), ":") {
		if i >= n {
			break
		}
		if twice, ok := fds[name]; ok {
			_ = unix.Close(twice) // of two equal ones
		}
		fds[name] = first + i
		unix.CloseOnExec(first + i)
	}
	return fds
}

// adopt finds the memory among descriptors. What is not complete is removed from the store, as it is when this process was killed halfway.
func (s *Systemd) adopt(fds map[string]int) (all []Held, err error) {
	for name, fd := range fds {
		number, ok := strings.CutPrefix(name, recordName)
		if !ok {
			continue
		}
		memory, there := fds[memoryName+number]
		r, failed := readRecord(fd)
		if failed == nil && there && number == hex.EncodeToString(r.Memory[:]) {
			all = append(all, Held{r, memory})
			delete(fds, memoryName+number)
			err = errors.Join(err, unix.Close(fd))
			delete(fds, name)
		}
	}
	for name, fd := range fds {
		err = errors.Join(err, unix.Close(fd))
		if strings.HasPrefix(name, memoryName) || strings.HasPrefix(name, recordName) {
			err = errors.Join(err, s.remove(name))
		}
	}
	return all, err
}

// Ready says that the server serves.
func (s *Systemd) Ready() error {
	if err := s.notify("READY=1", nil); err != nil {
		return fmt.Errorf("tell systemd that the server is ready: %w", err)
	}
	return nil
}

// Put has memory stored. The descriptor stays the caller's. Systemd does not say whether there was room for it.
func (s *Systemd) Put(r *Record, fd int) error {
	file, err := writeRecord(r)
	if err != nil {
		return fmt.Errorf("write the record of %s: %w", r.Key, err)
	}
	defer unix.Close(file)
	number := hex.EncodeToString(r.Memory[:])
	if err := errors.Join(s.store(recordName+number, file), s.store(memoryName+number, fd)); err != nil {
		return fmt.Errorf("have systemd store %s: %w", r.Key, err)
	}
	return nil
}

// Remove has memory stored no longer.
func (s *Systemd) Remove(memory [16]byte) error {
	number := hex.EncodeToString(memory[:])
	return errors.Join(s.remove(memoryName+number), s.remove(recordName+number))
}

// store stores a descriptor, whatever a poll of it says.
func (s *Systemd) store(name string, fd int) error {
	return s.notify("FDSTORE=1\nFDPOLL=0\nFDNAME="+name, unix.UnixRights(fd))
}

func (s *Systemd) remove(name string) error {
	if err := s.notify("FDSTOREREMOVE=1\nFDNAME="+name, nil); err != nil {
		return fmt.Errorf("have systemd forget a descriptor: %w", err)
	}
	return nil
}

func (s *Systemd) notify(text string, rights []byte) error {
	for {
		if err := unix.Sendmsg(s.fd, []byte(text), rights, &unix.SockaddrUnix{Name: s.path}, unix.MSG_NOSIGNAL); err != unix.EINTR {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// writeRecord returns the descriptor of a file that holds a record and cannot be changed.
func writeRecord(r *Record) (fd int, err error) {
	fd, err = unix.MemfdCreate("record", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	_, err = unix.Pwrite(fd, encode(isHeld, r), 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func readRecord(fd int) (r Record, err error) {
	b := make([]byte, frameSize+1)
	n, err := unix.Pread(fd, b, 0)
	if err != nil {
		return r, fmt.Errorf("read a record: %w", err)
	}
	k, r, err := decode(b[:n])
	if err == nil && k != isHeld {
		err = io.ErrUnexpectedEOF
	}
	return r, err
}
