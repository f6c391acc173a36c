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
func go_swap_plan(text *C.char, n C.size_t, answer *C.char, room C.size_t) C.int64_t {
	return plan("swap", client.Planner.Schedule, text, n, answer, room)
}

//export go_order
func go_order(text *C.char, n C.size_t, answer *C.char, room C.size_t) C.int64_t {
	return plan("order", client.Planner.Order, text, n, answer, room)
}

//export go_partition
func go_partition(text *C.char, n C.size_t, answer *C.char, room C.size_t) C.int64_t {
	return plan("partition", client.Planner.Partition, text, n, answer, room)
}

// request has a planner answer a JSON text by another.
type request func(client.Planner, context.Context, []byte) ([]byte, error)

// plan copies the answer to a request, and returns its length, or -1.
func plan(what string, ask request, text *C.char, n C.size_t, answer *C.char, room C.size_t) (length C.int64_t) {
	defer func() {
		if r := recover(); r != nil {
			self.log.printf("%s: BUG: %v\n%s", what, r, debug.Stack())
			fail(fmt.Sprint("BUG: ", r))
			length = -1
		}
	}()
	made, err := ask(client.Planner{Path: plannerPath()}, context.Background(), unsafe.Slice((*byte)(unsafe.Pointer(text)), int(n)))
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
