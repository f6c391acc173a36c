package main

// #include "libgm.h"
import "C"

import (
	"context"
	"fmt"
	"runtime/debug"
	"unsafe"

	"gm/internal/libgm/planner/client"
)

//export go_swap_plan
func go_swap_plan(text *C.char, n C.size_t, answer *C.char, room C.size_t) (length C.int64_t) {
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("swap: BUG: %v\n%s", r, debug.Stack())
			fail(fmt.Sprint("BUG: ", r))
			length = -1
		}
	}()
	planner := client.Planner{Path: plannerPath()}
	made, err := planner.Schedule(context.Background(), unsafe.Slice((*byte)(unsafe.Pointer(text)), int(n)))
	if err != nil {
		fail(err.Error())
		return -1
	}
	if room > 0 {
		to := unsafe.Slice((*byte)(unsafe.Pointer(answer)), int(room))
		to[copy(to[:len(to)-1], made)] = 0
	}
	return C.int64_t(len(made))
}
