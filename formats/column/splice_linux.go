package column

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// spliceBytes is asked for in one call, and as the size of the pipe, which is 64 KiB by default.
const spliceBytes = 1 << 20

// drain moves all of a pipe into a file and returns the number of bytes. The kernel hands the pages over where it can.
func drain(file, pipe *os.File) (int64, error) {
	// A larger pipe means fewer wakeups; an unprivileged user may be refused one.
	_, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, spliceBytes)
	total := int64(0)
	for {
		n, err := unix.Splice(int(pipe.Fd()), nil, int(file.Fd()), nil, spliceBytes, unix.SPLICE_F_MOVE)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no pipe, or a file system that cannot: go on by copying
			n, err := io.Copy(struct{ io.Writer }{file}, struct{ io.Reader }{pipe})
			return total + n, err
		case n == 0:
			return total, nil
		}
		total += max(0, n)
	}
}
