package hold

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Word is the command of gmswap that is the holder. The socket that it serves is its descriptor 3, and its argument says which that is.
	Word = "hold-keys"
	// firstTime is how long a holder waits for the server that has started it.
	firstTime = 10 * time.Second
	// aloneTime is how long a holder that holds something waits for a server. Then the memory goes.
	aloneTime = time.Hour
	// maxHeld bounds what a holder has.
	maxHeld = 1 << 14
)

// Asked says whether a command line asks for a holder.
func Asked(args []string) bool { return len(args) == 3 && args[1] == Word }

// Main is a holder. It returns the exit status.
func Main() int {
	file := os.NewFile(3, "socket")
	l, err := net.FileListener(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is for gmswap serve alone: %v\n", Word, err)
		return 2
	}
	socket, ok := l.(*net.UnixListener)
	if !ok || file.Close() != nil {
		return 2
	}
	h := holder{all: map[[16]byte]Held{}}
	h.serve(socket, firstTime, aloneTime)
	return 0
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
			_ = unix.Close(fd) // nobody asked for it
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
		_ = unix.Close(one.FD) // the server has it
		return
	}
	h.all[one.Memory] = one
}

func (h *holder) remove(memory [16]byte) {
	if one, ok := h.all[memory]; ok {
		delete(h.all, memory)
		_ = unix.Close(one.FD) // of a foreign file: there is nobody to tell
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
