package column

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// spliceBytes is the size of one call, and the size requested for the pipe, which has 64 KiB by default.
const spliceBytes = 1 << 20

// drain moves the contents of a pipe into a file and returns the number of bytes. The kernel moves pages where it can.
func drain(file, pipe *os.File) (int64, error) {
	// A larger pipe means fewer wakeups. The kernel may refuse it to an unprivileged user.
	_, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, spliceBytes)
	total := int64(0)
	for {
		n, err := unix.Splice(int(pipe.Fd()), nil, int(file.Fd()), nil, spliceBytes, unix.SPLICE_F_MOVE)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // not a pipe, or not supported by the file system: copy the rest
			n, err := io.Copy(struct{ io.Writer }{file}, struct{ io.Reader }{pipe})
			return total + n, err
		case n == 0:
			return total, nil
		}
		total += max(0, n)
	}
}
