// Package glibc makes the tools start on systems with an older glibc than that of the machine which built them. They import it for that
// alone.
//
// From glibc 2.34 on, what starts a program asks for a new version of __libc_start_main. start.c asks for the oldest in its place, and runs
// the program's constructors, which older systems leave to the program. versions.h, which make includes before all C code, does the like for
// the functions that are called. packaging checks what came of it.
package glibc

// #cgo amd64 LDFLAGS: -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0
import "C"
