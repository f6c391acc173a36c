package driver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/fake"
)

const mib = 1 << 20

// TestMain runs the tests on the installed driver, or on the fake one.
func TestMain(m *testing.M) {
	if onGPU {
		os.Exit(m.Run())
	}
	os.Exit(fake.Rerun(m.Run, "GM_FAKE_DEVICES=2"))
}

// alone runs the rest of a test in a process of its own, with more environment for the fake. It says whether this is that process.
func alone(t *testing.T, environment ...string) bool {
	t.Helper()
	if onGPU {
		t.Skip("this is of the fake driver")
	}
	mark := "GM_TEST_ALONE=" + t.Name()
	if slices.Contains(os.Environ(), mark) {
		return true
	}
	parts := strings.Split(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+strings.Join(parts, "$/^")+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), mark), environment...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

func load(t testing.TB) *Library {
	t.Helper()
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func open(t testing.TB) *Device {
	t.Helper()
	d, err := load(t).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got returns what a call gave, or fails the test.
func got[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		must(t, err)
		return value
	}
}

func TestLibrary(t *testing.T) {
	l := load(t)
	n := got[int](t)(l.Devices())
	v := got[int](t)(l.Version())
	name := open(t).Name()
	if onGPU {
		t.Logf("%d devices, the first a %s, CUDA %d", n, name, v)
	} else if n != 2 || v != 13000 || name != "NVIDIA H200" {
		t.Errorf("%d devices, the first a %s, CUDA %d", n, name, v)
	}
	_, err := l.Open(n)
	if want := fmt.Sprintf("driver: open device %d: cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)", n); err == nil || err.Error() != want {
		t.Errorf("a device that is not there: %v, want %s", err, want)
	}
}

// pair returns two devices.
func pair(t *testing.T) (first, second *Device) {
	t.Helper()
	l := load(t)
	if n := got[int](t)(l.Devices()); n < 2 {
		t.Skipf("%d GPUs", n)
	}
	var both [2]*Device
	for i := range both {
		d := got[*Device](t)(l.Open(i))
		t.Cleanup(func() { must(t, d.Close()) })
		both[i] = d
	}
	return both[0], both[1]
}

func TestNoDriver(t *testing.T) {
	broken := t.TempDir()
	must(t, os.WriteFile(filepath.Join(broken, "libcuda.so.1"), nil, 0o777))
	if !alone(t, "LD_LIBRARY_PATH="+broken) {
		return
	}
	if _, err := Load(); err == nil || !strings.HasPrefix(err.Error(), "driver: ") || !strings.HasSuffix(err.Error(), "libcuda.so.1: file too short") {
		t.Errorf("with no driver: %v", err)
	}
}

func TestNoGPU(t *testing.T) {
	if !alone(t, "GM_FAKE_DEVICES=0") {
		return
	}
	if _, err := Load(); err == nil || err.Error() != "driver: libcuda.so.1: cuInit: CUDA_ERROR_NO_DEVICE (100)" {
		t.Errorf("with no GPU: %v", err)
	}
}

func TestMemory(t *testing.T) {
	d := open(t)
	before, total, err := d.MemInfo()
	must(t, err)
	p := got[cuda.Ptr](t)(d.MemAlloc(3 * mib))
	after, _, err := d.MemInfo()
	must(t, err)
	if before-after != 4*mib || before > total {
		t.Errorf("%d bytes of %d free, then %d", before, total, after)
	}
	want := []byte("what was written is read back")
	must(t, d.MemcpyHtoD(p, want))
	read := make([]byte, len(want))
	must(t, d.MemcpyDtoH(read, p))
	if string(read) != string(want) {
		t.Errorf("read %q", read)
	}
	must(t, d.MemcpyHtoD(p, nil))
	must(t, d.MemcpyDtoH(nil, p))
	must(t, d.MemFree(p))
	if err := d.MemFree(p); code(err) != codeInvalidValue {
		t.Errorf("free twice: %v", err)
	}
}

// code returns the driver's code of an error.
func code(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestOutOfMemory(t *testing.T) {
	if !alone(t, "GM_FAKE_CAPACITY=0x40000000") {
		return
	}
	d := open(t)
	_, err := d.MemAlloc(2 << 30)
	if !errors.Is(err, cuda.ErrOutOfMemory) || err.Error() != "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)" {
		t.Errorf("alloc of too much: %v", err)
	}
	_, err = d.Create(2 << 30)
	if !errors.Is(err, cuda.ErrOutOfMemory) || err.Error() != "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (2)" {
		t.Errorf("create too much: %v", err)
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		rule, want string
		is         error
		call       func(d *Device) error
	}{
		{"cuMemFree:1=4", "cuMemFree: CUDA_ERROR_DEINITIALIZED (4)", ErrShutdown, func(d *Device) error { return d.MemFree(1) }},
		{"cuCtxPushCurrent:1=709", "cuCtxPushCurrent: CUDA_ERROR_CONTEXT_IS_DESTROYED (709)", ErrShutdown, (*Device).Synchronize},
		{"cuEventQuery:1=999", "cuEventQuery: CUDA_ERROR_UNKNOWN (999)", nil, func(d *Device) error { _, err := d.EventQuery(1); return err }},
		{"cuEventRecord:1=999", "cuEventRecord: CUDA_ERROR_UNKNOWN (999)", nil, func(d *Device) error { _, err := d.EventRecord(0); return err }},
		{"cuEventCreate:1=2", "cuEventRecord: CUDA_ERROR_OUT_OF_MEMORY (2)", cuda.ErrOutOfMemory, func(d *Device) error { _, err := d.EventRecord(0); return err }},
		{"cuMemMap:1=2", "cuMemMap: CUDA_ERROR_OUT_OF_MEMORY (2)", cuda.ErrOutOfMemory, func(d *Device) error { return d.Map(0, 0) }},
		{"cuMemGetInfo:1=54321", "cuMemGetInfo: unknown error (54321)", nil, func(d *Device) error { _, _, err := d.MemInfo(); return err }},
	} {
		t.Run(strings.ReplaceAll(strings.ReplaceAll(test.rule, ":", "-"), "=", "-"), func(t *testing.T) {
			if !alone(t, "GM_FAKE_FAIL="+test.rule) {
				return
			}
			d := open(t)
			err := test.call(d)
			if err == nil || err.Error() != test.want || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("gives %v, want %s", err, test.want)
			}
			must(t, d.Synchronize())
		})
	}
}
