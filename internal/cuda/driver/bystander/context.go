// Package bystander, for tests, acts as other code in a process that uses the driver: it makes a context current in a thread, and captures a
// stream. Its callers lock their goroutines to threads.
package bystander

// #cgo CFLAGS: -std=gnu11 -Wall -Wextra
// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdint.h>
//
// static void *driver(const char *name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name); }
// static int set_current(uintptr_t context) { return ((int (*)(void *))driver("cuCtxSetCurrent"))((void *)context); }
// static int get_current(uintptr_t *context) { return ((int (*)(void **))driver("cuCtxGetCurrent"))((void **)context); }
// static int begin_capture(uintptr_t stream) { return ((int (*)(void *, int))driver("cuStreamBeginCapture_v2"))((void *)stream, 0); }
// static int end_capture(uintptr_t stream, void **graph)
// {
// 	return ((int (*)(void *, void **))driver("cuStreamEndCapture"))((void *)stream, graph);
// }
import "C"

import (
	"fmt"
	"unsafe"
)

func check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: error %d", call, int(code))
}

// SetCurrent makes a context current in place of the one that is; 0 is none (cuCtxSetCurrent).
func SetCurrent(context uintptr) error {
	return check("cuCtxSetCurrent", C.set_current(C.uintptr_t(context)))
}

// Current returns the current context, 0 if there is none (cuCtxGetCurrent).
func Current() (uintptr, error) {
	var context C.uintptr_t
	err := check("cuCtxGetCurrent", C.get_current(&context))
	return uintptr(context), err
}

// BeginCapture starts to capture a stream, in the mode that forbids the most (cuStreamBeginCapture, CU_STREAM_CAPTURE_MODE_GLOBAL).
func BeginCapture(stream int64) error {
	return check("cuStreamBeginCapture", C.begin_capture(C.uintptr_t(stream)))
}

// EndCapture ends it. It fails if a call that is forbidden meanwhile was made (cuStreamEndCapture).
func EndCapture(stream int64) error {
	var graph unsafe.Pointer
	return check("cuStreamEndCapture", C.end_capture(C.uintptr_t(stream), &graph))
}
