// Packaging makes what gm is distributed as, for the Makefile.
//
//	packaging glibc FILE...  print the oldest glibc that the files load on, such as 2.17
//	packaging licences       print the licences of what the tools link
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
	}
	return errors.New("usage: packaging glibc FILE... | licences")
}
