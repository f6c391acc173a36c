package main

import (
	"strings"
	"testing"
)

// TestExample builds and runs the example of the documentation.
func TestExample(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "../../docs/examples/gm_example.c")
	r := k.newRun(t).passes(t, program)
	if !strings.Contains(r.out, " bytes reserved, 104857600 at the peak in use, ") {
		t.Errorf("it prints %s", r.out)
	}
	r.holdsNothing(t)
	r = k.newRun(t, "GM_FAKE_CAPACITY=1073741824", "GM_FAKE_LIMIT=576716800").do(t, program)
	const begin = "CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 1024.00 MiB"
	if r.rc != 1 || !strings.HasPrefix(r.err, begin) {
		t.Errorf("on a full device: exit %d\n%s%s", r.rc, r.out, r.err)
	}
}
