package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapped(t *testing.T, size int64, node int) *Memory {
	t.Helper()
	m, err := Map(size, node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmap(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// resident counts the pages of b that are there.
func resident(t *testing.T, b []byte) (n int) {
	t.Helper()
	vec := make([]byte, len(b)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		uintptr(unsafe.Pointer(unsafe.SliceData(vec))))
	if errno != 0 {
		t.Fatal(errno)
	}
	for _, v := range vec {
		n += int(v & 1)
	}
	return n
}

func TestTouch(t *testing.T) {
	m := mapped(t, 1<<40, -1) // of addresses, which cost nothing
	part := m.Bytes()[1<<30:][:50<<20]
	if n := resident(t, part); n != 0 {
		t.Errorf("%d pages before any was touched", n)
	}
	if err := Touch(part); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, part); n != len(part)/os.Getpagesize() {
		t.Errorf("%d pages of %d", n, len(part)/os.Getpagesize())
	}
	if n := resident(t, m.Bytes()[1<<30+50<<20:][:50<<20]) + resident(t, m.Bytes()[:50<<20]); n != 0 {
		t.Errorf("%d pages beside what was touched", n)
	}
	for i := range part {
		if part[i] != 0 {
			t.Fatalf("byte %d is %d", i, part[i])
		}
	}
	if err := Touch(nil); err != nil {
		t.Error(err)
	}
	part[1] = 1
	if err := Release(part[:10<<20]); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, part); n != 40<<20/os.Getpagesize() || part[1] != 0 {
		t.Errorf("%d pages after 10 of 50 MiB were given back, and byte 1 is %d", n, part[1])
	}
}

// TestNoMemory touches pages that there is nothing for: those behind the end of a file.
func TestNoMemory(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "empty"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 32<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	if err := unix.Madvise(b, unix.MADV_POPULATE_WRITE); errors.Is(err, unix.EINVAL) {
		t.Skip("the kernel touches no pages for a program")
	}
	if err := Touch(b); !errors.Is(err, unix.EFAULT) {
		t.Errorf("pages that cannot be: %v", err)
	}
}

func TestMapNothing(t *testing.T) {
	for _, size := range []int64{0, -1, 1 << 60} {
		if m, err := Map(size, -1); err == nil {
			t.Errorf("%d bytes are mapped at %p", size, m.Bytes())
		}
	}
}

func TestPlaced(t *testing.T) {
	m := mapped(t, 16<<20, 0)
	if err := Touch(m.Bytes()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/sys/devices/system/node/node0"); err == nil && m.Node() != 0 {
		t.Errorf("pages of node 0 come from %d", m.Node())
	}
	for _, node := range []int{-1, 1000, 5000} {
		if m := mapped(t, Page(), node); m.Node() != -1 {
			t.Errorf("pages of node %d, which is none, come from %d", node, m.Node())
		}
	}
}

func TestNode(t *testing.T) {
	dir := t.TempDir()
	for id, text := range map[string]string{"0000:1b:00.0": "1\n", "0000:1c:00.0": "-1\n", "0000:1d:00.0": "x", "0000:1e:00.0": ""} {
		if err := os.Mkdir(filepath.Join(dir, id), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, id, "numa_node"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]int{
		"0000:1B:00.0": 1, "0000:1C:00.0": -1, "0000:1D:00.0": -1, "0000:1E:00.0": -1, "0000:1F:00.0": -1, "": -1, "../../x": -1,
	} {
		if node := nodeIn(dir, id); node != want {
			t.Errorf("%s is on node %d, want %d", id, node, want)
		}
	}
	if node := Node("0000:FF:1F.7"); node != -1 {
		t.Errorf("a device that is not there is on node %d", node)
	}
}

func BenchmarkTouch(b *testing.B) {
	for _, size := range []int{64 << 20, 256 << 20} {
		b.Run(fmt.Sprint(size>>20, "MiB"), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				m, err := Map(int64(size), -1)
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(Touch(m.Bytes()), m.Unmap()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
