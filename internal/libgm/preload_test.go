package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPreload runs a program of the CUDA runtime with and without the preload library. The program uses memory of a device, resets the
// device, uses its memory again, then that of another. The library must no longer serve a device that was reset.
func TestPreload(t *testing.T) {
	k := newKit(t)
	preload := filepath.Join(k.dir, "libgmpreload.so")
	k.compileTo(t, preload, "preload/preload.c", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
		"-Wl,--version-script=preload/preload.map")
	program := k.compile(t, "testdata/runtime.c", "-lcudart")
	for _, test := range []struct {
		name   string
		env    []string
		want   string
		marked bool
	}{
		{"served", nil, "reused\nfresh\nreused\n", true},
		{"the library is beside it", []string{"GM_LIB="}, "reused\nfresh\nreused\n", true},
		{"no library", []string{"GM_LIB=/nowhere/libgm.so"}, "fresh\nfresh\nfresh\n", false},
		{"not preloaded", []string{"LD_PRELOAD="}, "fresh\nfresh\nfresh\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			r := k.newRun(t, append([]string{"LD_PRELOAD=" + preload, "GM_FAKE_DEVICES=2", "GMSTITCH_DIR=" + folder}, test.env...)...)
			r.do(t, program)
			if r.rc != 0 || r.out != test.want || (r.err != "") != strings.Contains(strings.Join(test.env, " "), "nowhere") {
				t.Errorf("exit %d\n%s%s", r.rc, r.out, r.err)
			}
			if _, err := os.Stat(filepath.Join(folder, "started")); (err == nil) != test.marked {
				t.Errorf("the mark: %v, want one: %v", err, test.marked)
			}
		})
	}
}

// TestPreloadAddresses checks that nothing is loaded into a process with little address space left, which would end it.
func TestPreloadAddresses(t *testing.T) {
	k := newKit(t)
	preload := filepath.Join(k.dir, "libgmpreload.so")
	k.compileTo(t, preload, "preload/preload.c", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--version-script=preload/preload.map")
	program := k.compile(t, "testdata/runtime.c", "-lcudart")
	for _, megabytes := range []int{300, 1000, 3000} {
		r := k.newRun(t, "LD_PRELOAD="+preload, "GM_FAKE_DEVICES=2")
		r.do(t, "prlimit", fmt.Sprint("--as=", megabytes<<20), program)
		if r.rc != 0 || r.out != "fresh\nfresh\nfresh\n" || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, "ulimit -v") {
			t.Errorf("%d MiB: exit %d\n%s%s", megabytes, r.rc, r.out, r.err)
		}
	}
}
