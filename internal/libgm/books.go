package main

// #include "libgm.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"gm/internal/libgm/page"
)

// books is the account of a device, in its page. C changes it, too (account.c), and both have a lock for it: each change is made between
// open and close, with no call of the driver in between. What C does not change may be read without.
type books struct {
	*page.Account
	ordinal  C.int
	version  *uint64 // in the page: odd while the account changes
	changing *uint32 // the lock
	marked   *int64  // the peak since gm_mark_peak
}

func newBooks(ordinal int, shown *page.Device) books {
	d := &C.gm_devices[ordinal]
	return books{&shown.Account, C.int(ordinal), &shown.Version, (*uint32)(unsafe.Pointer(&d.changing)), (*int64)(unsafe.Pointer(&d.marked))}
}

func (b *books) open() {
	if !atomic.CompareAndSwapUint32(b.changing, 0, 1) {
		C.gm_account_wait(b.ordinal)
	}
	atomic.AddUint64(b.version, 1)
}

func (b *books) close() {
	atomic.AddUint64(b.version, 1)
	if atomic.SwapUint32(b.changing, 0) == 2 {
		C.gm_account_wake(b.ordinal)
	}
}

// copy returns the account as it is now.
func (b *books) copy() page.Account {
	b.open()
	defer b.close()
	return *b.Account
}
