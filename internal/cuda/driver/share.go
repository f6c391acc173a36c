package driver

// #include "driver.h"
import "C"

import (
	"unsafe"

	"gm/internal/cuda"
)

// Shareable reports whether what Create has made so far, and will make, can be exported.
func (d *Device) Shareable() bool { return d.share.Load() != C.GM_SHARE_NONE }

// Export returns a file descriptor of physical memory, with which another process can import it. The memory exists as long as the descriptor
// is open (cuMemExportToShareableHandle).
func (d *Device) Export(h cuda.Handle) (fd int, err error) {
	r := C.gm_export(d.c, C.uint64_t(h))
	return int(r.value[0]), d.library.check(r)
}

// Import returns a handle of size bytes of physical memory that another process exported. The caller keeps the descriptor
// (cuMemImportFromShareableHandle).
func (d *Device) Import(fd int, size int64) (cuda.Handle, error) {
	r := C.gm_import(d.c, C.int(fd))
	if err := d.library.check(r); err != nil {
		return 0, err
	}
	h := cuda.Handle(r.value[0])
	d.mu.Lock()
	d.sizes[h] = size
	d.mu.Unlock()
	return h, nil
}

// IPC names memory from MemAlloc in other processes (CUipcMemHandle).
type IPC [C.sizeof_struct_gm_ipc]byte

// IPCHandle returns the name of the memory that MemAlloc returned at p (cuIpcGetMemHandle).
func (d *Device) IPCHandle(p cuda.Ptr) (IPC, error) {
	var handle IPC
	r := C.gm_ipc_get(d.c, C.uint64_t(p), (*C.struct_gm_ipc)(unsafe.Pointer(&handle)))
	return handle, d.library.check(r)
}

// OpenIPC maps memory of another process and returns its start. It can be mapped once (cuIpcOpenMemHandle).
func (d *Device) OpenIPC(handle IPC) (cuda.Ptr, error) {
	r := C.gm_ipc_open(d.c, (*C.struct_gm_ipc)(unsafe.Pointer(&handle)))
	return cuda.Ptr(r.value[0]), d.library.check(r)
}

// CloseIPC unmaps what OpenIPC mapped (cuIpcCloseMemHandle).
func (d *Device) CloseIPC(p cuda.Ptr) error {
	return d.library.check(C.gm_ipc_close(d.c, C.uint64_t(p)))
}
