package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoCrossCompiler runs the script where there is no cross compiler: a line says so, and it fails.
func TestNoCrossCompiler(t *testing.T) {
	cmd := exec.Command("/bin/bash", "aarch64.sh")
	cmd.Env = []string{"PATH=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	const want = "aarch64: nothing is built, aarch64-linux-gnu-gcc is not here (Debian: "
	if err == nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v: %s", err, out)
	}
}
