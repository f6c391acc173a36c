package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPreload runs a program of the CUDA runtime with the preload library, and without.
func TestPreload(t *testing.T) {
	k := newKit(t)
	preload := filepath.Join(k.dir, "libgmpreload.so")
	k.compileTo(t, preload, "preload/preload.c", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
		"-Wl,--version-script=preload/preload.map")
	program := k.compile(t, "testdata/runtime.c", "-lcudart")
	for _, test := range []struct {
		name string
		env  []string
		want string
	}{
		{"served", []string{"GM_PRELOAD=1"}, "reused\n"},
		{"the library is beside it", []string{"GM_PRELOAD=1", "GM_LIB="}, "reused\n"},
		{"not asked for", nil, "fresh\n"},
		{"no library", []string{"GM_PRELOAD=1", "GM_LIB=/nowhere/libgm.so"}, "fresh\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := k.newRun(t, append(test.env, "LD_PRELOAD="+preload, "GM_FAKE_DEVICES=2")...)
			r.do(t, program)
			if r.rc != 0 || r.out != test.want || (r.err != "") != strings.Contains(strings.Join(test.env, " "), "nowhere") {
				t.Errorf("exit %d\n%s%s", r.rc, r.out, r.err)
			}
		})
	}
}
