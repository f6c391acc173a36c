package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSanitizers runs programs with libgm.so's C, the programs and the fake driver compiled for the sanitizers of addresses, of undefined
// behaviour and of threads. Go's code is not: TestRandomRace has its races. Leaks are not looked for: what Go holds would count as lost.
func TestSanitizers(t *testing.T) {
	newKit(t)
	for name, flags := range map[string][]string{
		"address": {"-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"},
		"thread":  {"-fsanitize=thread"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needSanitizer(t, flags)
			k := buildKit(t.TempDir(), flags...)
			if k.err != nil {
				t.Fatal(k.err)
			}
			for _, source := range []string{"threads.c", "streams.c", "segments.c", "state.c", "share.c", "account.c"} {
				t.Run(source, func(t *testing.T) {
					k.newRun(t, "GM_FAKE_DEVICES=4", noLeaks).passes(t, k.compile(t, "testdata/"+source))
				})
			}
			t.Run("warm.c", func(t *testing.T) {
				k.newRun(t, noLeaks).passes(t, k.compile(t, "testdata/warm.c"), "threads")
			})
			t.Run("served.c", func(t *testing.T) {
				runtime, err := exec.Command("gcc", "-print-file-name=lib"+map[string]string{"address": "asan", "thread": "tsan"}[name]+".so").Output()
				if err != nil {
					t.Fatal(err)
				}
				k.sleeps(t, k.compile(t, "testdata/served.c"), noLeaks, "LD_PRELOAD="+strings.TrimSpace(string(runtime))+":"+k.gate(t))
			})
			t.Run("random.c", func(t *testing.T) {
				k.random(t, k.compile(t, "testdata/random.c"), driverCalls, noLeaks)
			})
			t.Run("random_swap.c", func(t *testing.T) {
				k.random(t, k.compile(t, "testdata/random_swap.c"), swapCalls, noLeaks)
			})
		})
	}
}

const noLeaks = "ASAN_OPTIONS=detect_leaks=0"

// needSanitizer skips where the compiler comes without a sanitizer's library, or the machine cannot run it.
func needSanitizer(t *testing.T, flags []string) {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "empty.c"), filepath.Join(dir, "empty")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{append(append([]string{"gcc"}, flags...), "-o", program, source), {program}} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no %s here: %v\n%s", flags[0], err, out)
		}
	}
}
