package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writable returns why an output cannot be written, before it is worked for. There may be none, or standard output.
func writable(file string) error {
	if file == "" || file == "-" {
		return nil
	}
	_, err := outputPath(file)
	return err
}

// outputPath returns the whole path of a file that is to be written: one that is there, or a new one in a folder in which it can be made.
func outputPath(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return "", fmt.Errorf("write %s: it is a folder", file)
		}
		return path, nil
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s: there is no folder %s", filepath.Base(path), folder)
	}
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return "", fmt.Errorf("write %s: no file can be made in %s: %w", file, folder, err)
	}
	return path, nil
}
