// Packaging makes what gm is distributed as, for the Makefile.
//
//	packaging glibc FILE...                  print the oldest glibc that the files load on, such as 2.17
//	packaging licences                       print the licences of what the tools link
//	packaging wheel FOLDER INSTALLED FILE... make a wheel in a folder from an installation, for the glibc that it and the files need
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) > 1 && args[0] == "glibc":
		oldest, err := oldestGlibc(args[1:])
		if err == nil {
			_, err = fmt.Fprintln(out, oldest)
		}
		return err
	case len(args) == 1 && args[0] == "licences":
		return licences(out)
	case len(args) > 2 && args[0] == "wheel":
		name, err := makeWheel(args[1], args[2], args[3:])
		if err == nil {
			_, err = fmt.Fprintln(out, name)
		}
		return err
	}
	return errors.New("expected glibc FILE..., wheel FOLDER INSTALLED FILE..., or licences")
}
