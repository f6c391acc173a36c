package bystander

// #include <dlfcn.h>
// #include <stdbool.h>
// #include <stdlib.h>
//
// static void fail_at(const char *call, unsigned long position, bool onwards, int code)
// {
// 	void *f = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_fault_at");
// 	((void (*)(const char *, unsigned long, bool, int))f)(call, position, onwards, code);
// }
// static unsigned long failed(void)
// {
// 	return ((unsigned long (*)(void))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_fault_count"))();
// }
import "C"

import "unsafe"

// FailAt has a call of the fake driver fail with an error, in any thread: that at a position from now on, the first at 1, and if onwards is set
// all later ones of its name, too. Position 0 ends that.
func FailAt(call string, position int, onwards bool, code int) {
	name := C.CString(call)
	defer C.free(unsafe.Pointer(name))
	C.fail_at(name, C.ulong(position), C.bool(onwards), C.int(code))
}

// Failed returns how many calls of the fake driver have failed so.
func Failed() int { return int(C.failed()) }
