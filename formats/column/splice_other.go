//go:build !linux

package column

import (
	"io"
	"os"
)

// drain moves the contents of a pipe into a file and returns the number of bytes.
func drain(file, pipe *os.File) (int64, error) { return io.Copy(file, pipe) }
