// Package unnamed makes temporary files that have no name at any moment: they go away with the process, however that ends.
package unnamed

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Open makes an empty file for reading and writing. folder is where its bytes lie; if it is empty, that is os.TempDir.
func Open(folder string) (*os.File, error) {
	if folder == "" {
		folder = os.TempDir()
	}
	fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_EXCL, 0o600)
	if err != nil {
		return named(folder)
	}
	return os.NewFile(uintptr(fd), filepath.Join(folder, "unnamed")), nil
}

// named serves file systems that cannot make a file without a name (NFS, some overlays): it has one until it is removed.
func named(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "gm-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	return file, nil
}
