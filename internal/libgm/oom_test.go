package main

import (
	"path/filepath"
	"testing"
)

// TestOutOfMemory throws the exceptions of a stand-in for PyTorch's library.
func TestOutOfMemory(t *testing.T) {
	k := newKit(t)
	for name, flags := range map[string][]string{
		"OutOfMemoryError": nil, "wheels up to 2.6": {"-D_GLIBCXX_USE_CXX11_ABI=0"}, "Error": {"-DOTHER"},
	} {
		t.Run(name, func(t *testing.T) {
			k := k
			k.dir = t.TempDir()
			c10 := filepath.Join(k.dir, "libc10.so")
			k.compileTo(t, c10, "testdata/c10.cpp", append(flags, "-shared", "-fPIC", "-fvisibility=hidden")...)
			program := filepath.Join(k.dir, "oom")
			k.compileTo(t, program, "testdata/oom.cpp", append(flags, c10, "-Wl,-rpath,"+k.dir)...)
			for _, allocator := range allocators {
				k.newRun(t, "GM_ALLOC="+allocator, "GM_FAKE_CAPACITY=10737418240").passes(t, program)
			}
		})
	}
}
