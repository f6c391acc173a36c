package capture

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// printed returns what a program prints, with and without being recorded.
func printed(t *testing.T, o Options, words ...string) (without, with string) {
	t.Helper()
	s, b := sessionOf(t)
	s.options.Audit, s.options.NativeStacks = o.Audit, o.NativeStacks
	without = output(t, exec.Command(words[0], words[1:]...).Output)
	file, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if status, err := s.Run(words, file); status != 0 || err != nil {
		t.Errorf("%s recorded in %s: status %d, %v", words, b.folder, status, err)
	}
	with = output(t, func() ([]byte, error) { return os.ReadFile(file.Name()) })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return without, with
}

func output(t *testing.T, read func() ([]byte, error)) string {
	t.Helper()
	text, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Threads that are cancelled end where they would without gmtrace, with the memory that they would have, and hold nobody up.
func TestCancel(t *testing.T) {
	plug := compileHere(t, "libplug.so", "plug.c", "-shared", "-fPIC", "-lcuda")
	program := compileHere(t, "cancel", "cancel.c", plug, "-lcuda")
	for way, delay := range map[string]string{"first": "", "later": "", "within": "cuMemAlloc=1ms"} {
		t.Setenv("GM_FAKE_DELAY", delay)
		for _, o := range []Options{{}, {Audit: true}, {NativeStacks: true}} {
			without, with := printed(t, o, program, way)
			if with != without || !strings.HasSuffix(with, "goes on\n") {
				t.Errorf("%s, %+v: recorded\n%swithout\n%s", way, o, with, without)
			}
		}
	}
}

// What the preload library takes of a thread's stack is bounded, and threads of the smallest stack have room for it.
func TestStackUse(t *testing.T) {
	program := compileHere(t, "stack", "stack.c", "-lcuda", "-lcudart")
	ways := []string{"retain", "alloc", "pool", "runtime", "refused", "code", "address"}
	for _, o := range []Options{{}, {Audit: true}, {NativeStacks: true}} {
		bound := 2 << 10
		if o.NativeStacks {
			bound = 4 << 10
		}
		for _, way := range ways {
			without, with := printed(t, o, program, way, way) // the first time in the process, and again
			before, after := strings.Fields(without), strings.Fields(with)
			for i := range before {
				plain, errPlain := strconv.Atoi(before[i])
				traced, errTraced := strconv.Atoi(after[i])
				most := bound
				if i == 0 {
					most = 4 << 10 // the driver is looked up and the ring is made: 2.9 KiB on a CPU without AVX-512
				}
				if errPlain != nil || errTraced != nil || traced-plain > most {
					t.Errorf("%s, call %d, %+v: %s bytes of the stack, without gmtrace %s", way, i+1, o, after[i], before[i])
				}
			}
			printed(t, o, program, "smallest", way, way)
		}
	}
}

// A program that uses CUDA has the descriptors that it has without gmtrace, and so have those that it starts.
func TestDescriptors(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, {Audit: true}, {NativeStacks: true}} {
		without, with := printed(t, o, filepath.Join(b.folder, "driver"), "linked", "pools", "descriptors")
		if with != without {
			t.Errorf("%+v: descriptors\n%swithout\n%s", o, with, without)
		}
	}
}
