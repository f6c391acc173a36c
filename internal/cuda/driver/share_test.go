package driver

import (
	"syscall"
	"testing"

	"gm/internal/cuda"
)

// TestShare maps exported memory a second time, as another process would.
func TestShare(t *testing.T) {
	d := open(t)
	const size = 2 * mib
	h := got[cuda.Handle](t)(d.Create(size))
	if !d.Shareable() {
		t.Skip("the device gives no file descriptors")
	}
	fd := got[int](t)(d.Export(h))
	again := got[cuda.Handle](t)(d.Import(fd, size))
	must(t, syscall.Close(fd))
	p, q := mapped(t, d, size, h), mapped(t, d, size, again)
	must(t, d.MemcpyHtoD(p, []byte("here")))
	var read [4]byte
	must(t, d.MemcpyDtoH(read[:], q))
	if string(read[:]) != "here" {
		t.Errorf("read %q", read)
	}
	for _, h := range []cuda.Handle{h, again} {
		must(t, d.Release(h))
	}
	for _, p := range []cuda.Ptr{p, q} {
		must(t, d.Unmap(p, size))
		must(t, d.AddressFree(p, size))
	}
	if _, err := d.Import(-1, size); err == nil {
		t.Error("imported without a descriptor")
	}
}

// TestIPC names memory for other processes. This one cannot open it.
func TestIPC(t *testing.T) {
	d := open(t)
	p := got[cuda.Ptr](t)(d.MemAlloc(4 * mib))
	must(t, d.MemcpyHtoD(p, []byte("kept")))
	first, again := got[IPC](t)(d.IPCHandle(p)), got[IPC](t)(d.IPCHandle(p))
	var read [4]byte
	must(t, d.MemcpyDtoH(read[:], p))
	if first != again || string(read[:]) != "kept" {
		t.Errorf("named %x, then %x; contents %q", first, again, read)
	}
	if at, err := d.OpenIPC(first); err == nil {
		t.Errorf("opened at %#x in its own process", at)
	}
	if err := d.CloseIPC(p); err == nil {
		t.Error("memory that was not opened was closed")
	}
	must(t, d.MemFree(p))
}
