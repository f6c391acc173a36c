package capture

import (
	"embed"
	"errors"
)

// preloaded holds the library that traced programs load, if it was built before this package.
//
//go:embed preload
var preloaded embed.FS

// Preload returns the library that traced programs load, a shared object.
func Preload() ([]byte, error) {
	library, err := preloaded.ReadFile("preload/libgmtrace.so")
	if err != nil {
		return nil, errors.New("this gmtrace was built without its preload library: build it with make")
	}
	return library, nil
}
