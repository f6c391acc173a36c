package driver

import (
	"bytes"
	"os"
	"testing"

	"gm/internal/cuda"
)

// mapped reserves a range and maps a handle at each of its steps of size bytes.
func mapped(t testing.TB, d *Device, size int64, handles ...cuda.Handle) cuda.Ptr {
	t.Helper()
	p := got[cuda.Ptr](t)(d.AddressReserve(size * int64(len(handles))))
	for i, h := range handles {
		must(t, d.Map(p+cuda.Ptr(size)*cuda.Ptr(i), h))
	}
	must(t, d.SetAccess(p, size*int64(len(handles))))
	return p
}

// TestAliases maps one handle twice in one range: what is written at one address is read at the other.
func TestAliases(t *testing.T) {
	d := open(t)
	const size = 4 * mib
	h := got[cuda.Handle](t)(d.Create(size))
	p := mapped(t, d, size, h, h)
	want := bytes.Repeat([]byte("gm"), size/2)
	must(t, d.MemcpyHtoD(p, want))
	read := make([]byte, size)
	must(t, d.MemcpyDtoH(read, p+size))
	if !bytes.Equal(read, want) {
		t.Error("two mappings of a handle are not the same memory")
	}
	must(t, d.Release(h))
	if err := d.Map(p, h); code(err) != codeInvalidValue {
		t.Errorf("a released handle is mapped: %v", err)
	}
	if err := d.Release(h); code(err) != codeInvalidValue {
		t.Errorf("released twice: %v", err)
	}
	if err := d.AddressFree(p, 2*size); code(err) != codeInvalidValue {
		t.Errorf("a range in use is freed: %v", err)
	}
	must(t, d.Unmap(p, 2*size))
	must(t, d.AddressFree(p, 2*size))
}

// TestStitch maps handles of several sizes, of which the second keeps its contents under a new address.
func TestStitch(t *testing.T) {
	d := open(t)
	small, large := got[cuda.Handle](t)(d.Create(2*mib)), got[cuda.Handle](t)(d.Create(6*mib))
	first := mapped(t, d, 6*mib, large)
	must(t, d.MemcpyHtoD(first+5*mib, []byte("kept")))
	p := got[cuda.Ptr](t)(d.AddressReserve(8 * mib))
	must(t, d.Map(p, small))
	must(t, d.Map(p+2*mib, large))
	must(t, d.SetAccess(p, 8*mib))
	must(t, d.Unmap(first, 6*mib))
	var read [4]byte
	must(t, d.MemcpyDtoH(read[:], p+7*mib))
	if string(read[:]) != "kept" {
		t.Errorf("read %q", read)
	}
	must(t, d.MemsetD32Async(p, 0, 2*mib, 0))
	must(t, d.StreamSynchronize(0))
	must(t, d.Unmap(p, 8*mib))
	for _, h := range []cuda.Handle{small, large} {
		must(t, d.Release(h))
	}
	must(t, d.AddressFree(first, 6*mib))
	must(t, d.AddressFree(p, 8*mib))
}

// TestCreateRefused has a driver that refuses to make memory that can be passed on, which it is then made without.
func TestCreateRefused(t *testing.T) {
	if !alone(t, "GM_FAKE_FAIL=cuMemCreate:1=800") {
		return
	}
	d := open(t)
	h := got[cuda.Handle](t)(d.Create(2 * mib))
	mapped(t, d, 2*mib, h)
	if d.share.Load() != 0 {
		t.Errorf("memory is still made for %d", d.share.Load())
	}
	if n := files(t); n != 1 { // of the fake's, which keeps memory that cannot be exported in one
		t.Errorf("%d files of memory", n)
	}
}

// files counts the memory files of this process.
func files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && len(target) > 6 && target[:7] == "/memfd:" {
			n++
		}
	}
	return n
}

// TestCreateWrong asks for a size that no kind of memory has.
func TestCreateWrong(t *testing.T) {
	d := open(t)
	before := d.share.Load()
	if _, err := d.Create(mib); code(err) != codeInvalidValue {
		t.Errorf("half a granule: %v", err)
	}
	if d.share.Load() != before {
		t.Error("a wrong size changed what memory is made for")
	}
}

// TestPeers has a device read and write what is mapped on another.
func TestPeers(t *testing.T) {
	d, peer := pair(t)
	n := got[int](t)(d.library.Devices())
	if err := d.Peers([]int{0, n}); code(err) != 101 {
		t.Errorf("a peer that is not there: %v", err)
	}
	must(t, d.Peers([]int{0, 1}))
	if n := len(*d.access.Load()); n != 2 {
		t.Fatalf("access for %d devices, want 2", n)
	}
	p := mapped(t, d, 2*mib, got[cuda.Handle](t)(d.Create(2*mib)))
	s := got[cuda.Stream](t)(peer.StreamCreate())
	must(t, peer.MemsetD32Async(p, 7, mib/2, s))
	must(t, peer.StreamSynchronize(s))
	if read := word(t, d, p+2*mib-4); read != 7 {
		t.Errorf("read %d of what the peer wrote", read)
	}
	must(t, d.MemcpyHtoD(p, []byte("for the peer")))
	read := make([]byte, 12)
	must(t, peer.MemcpyDtoH(read, p))
	if string(read) != "for the peer" {
		t.Errorf("the peer reads %q", read)
	}
	must(t, peer.StreamDestroy(s))
}
