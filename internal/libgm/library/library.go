// Package library holds the shared objects that travel inside of gmstitch and gmswap, if they were built: make puts them beside this file.
package library

import (
	"embed"
	"fmt"
)

// The names of the shared objects.
const (
	Allocator = "libgm.so"
	Preload   = "libgmpreload.so"
	Gate      = "libgmgate.so"
)

//go:embed *
var files embed.FS

// Read returns a shared object.
func Read(name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("this tool was built without %s: build it with make", name)
	}
	return data, nil
}
