package wire

import (
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
)

// addressMax is the longest name of a socket, in bytes: sun_path has 108 with the final 0.
const addressMax = 107

// Address returns a name for a socket that fits into an address, also where the path is too long for one: then it leads through a descriptor
// of the socket's folder, and holds until release is called.
func Address(path string) (name string, release func(), err error) {
	if len(path) <= addressMax {
		return path, func() {}, nil
	}
	const pathOnly = 0x200000 // O_PATH
	folder, err := syscall.Open(filepath.Dir(path), pathOnly|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open %s: %w", filepath.Dir(path), err)
	}
	return "/proc/self/fd/" + strconv.Itoa(folder) + "/" + filepath.Base(path), func() { syscall.Close(folder) }, nil
}
