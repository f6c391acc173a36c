package main

import (
	"path/filepath"
	"testing"
)

// torchClass is the C++ class that makes libgm.so PyTorch's allocator, as it is compiled in a process of PyTorch.
const torchClass = "../torch/gmstitch/python/gmstitch_hook/cpp"

// TestTorch uses the class as PyTorch does, by stand-ins for the headers and the libraries of two of its versions.
func TestTorch(t *testing.T) {
	k := newKit(t)
	for name, version := range map[string]string{"2.6": "-DTORCH=206", "2.11": "-DTORCH=211"} {
		t.Run(name, func(t *testing.T) {
			k := k
			k.dir = t.TempDir()
			program := filepath.Join(k.dir, "allocator")
			k.compileTo(t, program, "testdata/torch/allocator.cpp", version, "-Itestdata/torch/include", "-Itestdata/torch", "-Itestdata",
				"-I"+torchClass, "testdata/torch/borrowed.cpp", "testdata/torch/stand_in.cpp", torchClass+"/install.cpp", "-lcudart")
			for _, allocator := range allocators {
				t.Run(allocator, func(t *testing.T) {
					k.newRun(t, "GM_ALLOC="+allocator, "GM_FAKE_CAPACITY=1073741824", "GM_FAKE_DEVICES=2").passes(t, program, k.library())
				})
			}
			k.newRun(t, "GM_FAKE_DEVICES=2").passes(t, program, k.library(), "late")
		})
	}
}
