package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

const (
	// Word is the command of gmswap that is the holder. The socket that it serves is its descriptor 3, that which the socket's path leads to
	// is 4, and its argument says which server's it is.
	Word = "hold-keys"
	// firstTime is how long a holder waits for the server that has started it.
	firstTime = 10 * time.Second
	// aloneTime is how long a holder that holds something waits for a server. Then the memory goes.
	aloneTime = time.Hour
	// lookTime is how often a holder looks whether a server can find it.
	lookTime = time.Second
	// maxHeld bounds what a holder has.
	maxHeld = 1 << 14
)

// Asked says whether a command line asks for a holder.
func Asked(args []string) bool { return len(args) == 3 && args[1] == Word }

// Main is a holder. It returns the exit status.
func Main() int {
	socket, own, err := passedSocket()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is for gmswap serve alone: %v\n", Word, err)
		return 2
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		h := holder{all: map[[16]byte]Held{}}
		h.serve(socket, firstTime, aloneTime)
	}()
	await(served, socketOf(os.Args[2]), own, lookTime)
	return 0
}

// passedSocket returns the socket that the server has passed to this process, and what its path leads to.
func passedSocket() (socket *net.UnixListener, own fs.FileInfo, err error) {
	file, path := os.NewFile(3, "socket"), os.NewFile(4, "path")
	l, err := net.FileListener(file)
	if err != nil {
		return nil, nil, err
	}
	if own, err = path.Stat(); err != nil {
		return nil, nil, err
	}
	socket, ok := l.(*net.UnixListener)
	if !ok {
		return nil, nil, errors.New("descriptor 3 is no socket of its kind")
	}
	return socket, own, errors.Join(file.Close(), path.Close())
}

// await returns once a channel is closed, or no server can find the socket any longer, as its path is gone or leads to another one.
func await(served <-chan struct{}, path string, own fs.FileInfo, look time.Duration) {
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		select {
		case <-served:
			return
		case <-t.C:
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, own) {
			return
		}
	}
}

// holder is what a holder has.
type holder struct{ all map[[16]byte]Held }

// serve serves one server after the other, so that all that one has said before it was killed is done before the next is heard. It returns
// when there is no server and nothing to hold, or when none has come for some time: the first one, or the next.
func (h *holder) serve(l *net.UnixListener, first, alone time.Duration) {
	for wait := first; ; {
		if l.SetDeadline(time.Now().Add(wait)) != nil {
			return
		}
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		if checkPeer(c) == nil {
			h.follow(c)
			wait = alone
		}
		if c.Close() != nil || wait == alone && len(h.all) == 0 {
			return
		}
	}
}

// follow does what a server says, until that ends.
func (h *holder) follow(c *net.UnixConn) {
	for {
		k, r, fd, err := receive(c)
		if err != nil {
			return
		}
		if k != toPut && fd >= 0 {
			discard(fd) // nobody asked for it
		}
		switch k {
		case toPut:
			h.put(Held{r, fd})
		case toRemove:
			h.remove(r.Memory)
		case toClear:
			for memory := range h.all {
				h.remove(memory)
			}
		case toTake:
			if h.tell(c) != nil {
				return
			}
		}
	}
}

func (h *holder) put(one Held) {
	h.remove(one.Memory)
	if len(h.all) >= maxHeld {
		discard(one.FD) // the server has it
		return
	}
	h.all[one.Memory] = one
}

func (h *holder) remove(memory [16]byte) {
	if one, ok := h.all[memory]; ok {
		delete(h.all, memory)
		discard(one.FD)
	}
}

// tell says what is held.
func (h *holder) tell(c *net.UnixConn) error {
	for _, one := range h.all {
		if err := send(c, isHeld, &one.Record, one.FD); err != nil {
			return err
		}
	}
	return send(c, isAll, &Record{}, -1)
}
