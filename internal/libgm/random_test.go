package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	serving "gm/internal/swap/server"
	"gm/internal/swap/server/wire"
)

// driverCalls are the driver calls of an allocator. Each fails in some test.
var driverCalls = []string{
	"cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemRelease", "cuMemAddressReserve", "cuMemAddressFree", "cuMemMap", "cuMemUnmap",
	"cuMemSetAccess", "cuMemGetInfo", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuStreamWaitEvent",
	"cuStreamSynchronize", "cuStreamIsCapturing", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
	"cuThreadExchangeStreamCaptureMode", "cuInit", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
	"cuDeviceCanAccessPeer", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuIpcGetMemHandle", "cuCtxSynchronize",
}

// swapCalls are the driver calls of a swapper.
var swapCalls = []string{
	"cuMemHostRegister", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuStreamWaitEvent",
	"cuStreamIsCapturing", "cuEventElapsedTime", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
	"cuThreadExchangeStreamCaptureMode",
}

// errorCodes are out of memory, an invalid value, an illegal address and an unknown error.
var errorCodes = []int{2, 1, 700, 999}

// TestRandom runs testdata/random.c on every allocator, with settings drawn from a seed. By default there are a few runs; GM_RANDOM_TIME
// is the time for each allocator instead, and GM_RANDOM_SEED the first seed.
func TestRandom(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/random.c")
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			k.random(t, program, driverCalls, "GM_ALLOC="+allocator, "GM_FAKE_WORK=cuMemsetD32Async=20us", races(t))
		})
	}
}

// TestRandomSwap does the same with testdata/random_swap.c.
func TestRandomSwap(t *testing.T) {
	k := newKit(t)
	t.Parallel()
	k.random(t, k.compile(t, "testdata/random_swap.c"), swapCalls, "GM_FAKE_WORK=cuMemcpyDtoHAsync=50us,cuMemcpyHtoDAsync=50us", races(t))
}

// races has the fake driver look for uses of memory by streams of which neither waits for the other. There are to be none.
func races(t *testing.T) (env string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "races")
	t.Cleanup(func() {
		if found, err := os.ReadFile(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v\n%s", err, found)
		}
	})
	return "GM_FAKE_RACES=" + file
}

// TestRandomRace runs both with the race detector. The detector knows only the addresses of a program, not those of a shared library, so
// the library is linked into the program.
func TestRandomRace(t *testing.T) {
	k := newKit(t)
	archive := filepath.Join(k.dir, "race.a")
	if runtime.GOARCH != "amd64" {
		t.Skip("the race detector is asked for on amd64 alone")
	}
	if err := k.tool("go", "build", "-race", "-buildmode=c-archive", "-o", archive, "."); err != nil {
		t.Fatal(err)
	}
	link := func(name string) string {
		out := filepath.Join(k.dir, name+"_race")
		args := []string{"-std=gnu11", "-g", "-O1", "-no-pie", "-I" + k.fake.Include, "-I.", "-o", out, "testdata/" + name + ".c", archive,
			"-L" + k.fake.Dir, "-lcuda", "-pthread", "-ldl", "-lm"}
		if err := k.tool("gcc", args...); err != nil {
			t.Fatal(err)
		}
		return out
	}
	random, swap := link("random"), link("random_swap")
	for _, allocator := range allocators {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			k.random(t, random, driverCalls, "GM_ALLOC="+allocator, "GORACE=halt_on_error=1")
		})
	}
	t.Run("swap", func(t *testing.T) {
		t.Parallel()
		k.random(t, swap, swapCalls, "GORACE=halt_on_error=1")
	})
}

// keyCalls are the driver calls of memory by keys.
var keyCalls = []string{
	"cuMemCreate", "cuMemRelease", "cuMemAddressReserve", "cuMemAddressFree", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemcpyHtoD",
	"cuCtxSynchronize", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle", "cuDeviceGetPCIBusId", "cuDevicePrimaryCtxRetain",
	"cuCtxGetCurrent", "cuCtxPushCurrent",
}

var objectCalls = []string{
	"cuMemCreate", "cuMemRelease", "cuMemAddressReserve", "cuMemAddressFree", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemcpyDtoHAsync",
	"cuMemcpyHtoDAsync", "cuEventRecord", "cuStreamWaitEvent", "cuMemHostRegister", "cuMemGetInfo", "cuStreamSynchronize",
}

// TestRandomObjects runs testdata/random_objects.c three times at once with one server. Calls of the driver fail: what each reads of its
// objects is what it wrote.
func TestRandomObjects(t *testing.T) {
	k := newKit(t)
	t.Parallel()
	program := k.compile(t, "testdata/random_objects.c")
	m := serveJobs(t, serving.Settings{})
	first, long := randomTime()
	var sum [4]int64
	for seed, end := first, time.Now().Add(long); seed < first+4 || time.Now().Before(end); seed++ {
		r := k.newRun(t, "GM_SERVER="+m.path, "GM_FAKE_DEVICES=4", "GM_LOG=/dev/null")
		var all sync.WaitGroup
		for i := range uint64(3) {
			args := append(randomJob(3*seed+i, objectCalls), "ops=300", "devices=2")
			all.Go(func() {
				one := *r
				var n [4]int64
				one.do(t, program, args...)
				if _, err := fmt.Sscan(one.out, &n[0], &n[1], &n[2], &n[3]); err != nil || one.rc != 0 {
					t.Errorf("%s: exit %d\n%s%s", strings.Join(args, " "), one.rc, one.out, one.err)
				}
				for j := range n {
					atomic.AddInt64(&sum[j], n[j])
				}
			})
		}
		all.Wait()
	}
	m.stop()
	t.Logf("%d calls did what they were asked, %d did not, %d calls of the driver failed, %d objects left", sum[0], sum[1], sum[2], sum[3])
	if slices.Contains(sum[:], 0) {
		t.Error("it was not tried out")
	}
}

// TestRandomKeys runs testdata/random_keys.c three times at once with one server. Calls of the driver fail in two of them, and the third is
// killed at a random moment: what the others find under a key is whole, and nothing is held in the end.
func TestRandomKeys(t *testing.T) {
	k := newKit(t)
	t.Parallel()
	program := k.compile(t, "testdata/random_keys.c")
	first, long := randomTime()
	var sum [3]int64
	for seed, end := first, time.Now().Add(long); seed < first+6 || time.Now().Before(end); seed++ {
		m := serveJobs(t, serving.Settings{})
		r := k.newRun(t, "GM_SERVER="+m.path, "GM_FAKE_DEVICES=4", "GM_LOG=/dev/null")
		killed := r.interactive(t, program, fmt.Sprint("seed=", seed+1<<20), "threads=3", "ops=100000", "devices=2")
		var all sync.WaitGroup
		for i := range uint64(2) {
			args := append(randomJob(2*seed+i, keyCalls), "ops=60", "devices=2")
			all.Go(func() {
				one := *r
				var n [3]int64
				one.do(t, program, args...)
				if _, err := fmt.Sscan(one.out, &n[0], &n[1], &n[2]); err != nil || one.rc != 0 {
					t.Errorf("%s: exit %d\n%s%s", strings.Join(args, " "), one.rc, one.out, one.err)
				}
				for j := range n {
					atomic.AddInt64(&sum[j], n[j])
				}
			})
		}
		time.Sleep(time.Duration(rand.New(rand.NewPCG(seed, 7)).IntN(300)) * time.Millisecond)
		killed.cmd.Process.Kill()
		all.Wait()
		until(t, "the end of all uses", func() bool {
			return !slices.ContainsFunc(m.Shares(), func(s wire.Message) bool { return s.Amount != 0 })
		})
		m.stop()
		if t.Failed() {
			t.Fatal("seed ", seed)
		}
	}
	t.Logf("%d keys opened, %d calls of gm failed, %d of the driver", sum[0], sum[1], sum[2])
	if sum[0] == 0 || sum[1] == 0 || sum[2] == 0 {
		t.Errorf("%d keys opened, %d calls of gm failed, %d of the driver", sum[0], sum[1], sum[2])
	}
}

// randomTime returns GM_RANDOM_SEED and GM_RANDOM_TIME.
func randomTime() (seed uint64, long time.Duration) {
	seed, _ = strconv.ParseUint(os.Getenv("GM_RANDOM_SEED"), 10, 64)
	long, _ = time.ParseDuration(os.Getenv("GM_RANDOM_TIME"))
	return seed, long
}

// random runs a program repeatedly.
func (k kit) random(t *testing.T, program string, calls []string, env ...string) {
	t.Helper()
	first, long := randomTime()
	end := time.Now().Add(long)
	var runs, met, failed, faults int64
	for seed := first; seed < first+8 || time.Now().Before(end); seed++ {
		args := randomJob(seed, calls)
		r := k.newRun(t, append(env, "GM_FAKE_DEVICES=4", "GM_LOG=/dev/null")...)
		var m, f, n int64
		if r.do(t, program, args...); r.rc != 0 {
			t.Fatalf("%s: exit %d\n%s%s", strings.Join(args, " "), r.rc, r.out, r.err)
		}
		if _, err := fmt.Sscan(r.out, &m, &f, &n); err != nil || m == 0 && n == 0 {
			t.Fatalf("%s: says %q", strings.Join(args, " "), r.out)
		}
		runs, met, failed, faults = runs+1, met+m, failed+f, faults+n
		if r.holdsNothing(t); t.Failed() {
			t.Fatal(strings.Join(args, " "))
		}
	}
	t.Logf("%d runs from seed %d: %d requests met, %d not, %d calls of the driver failed", runs, first, met, failed, faults)
	if faults == 0 {
		t.Error("no call of the driver failed")
	}
}

// randomJob returns the arguments of a run. A quarter of the runs have no faults; in others all calls fail occasionally, or one kind often.
func randomJob(seed uint64, calls []string) []string {
	rng := rand.New(rand.NewPCG(seed, 31))
	args := []string{
		fmt.Sprint("seed=", seed), fmt.Sprint("threads=", 1+rng.IntN(4)), fmt.Sprint("ops=", 300+rng.IntN(700)),
		fmt.Sprint("devices=", 1+rng.IntN(3)), fmt.Sprint("pools=", rng.IntN(2)), fmt.Sprint("forks=", rng.IntN(8)/7),
		fmt.Sprint("error=", errorCodes[rng.IntN(len(errorCodes))]),
	}
	if seed/4%2 == 1 { // C keeps large blocks
		args = append(args, "streams=1")
	}
	call := calls[rng.IntN(len(calls))]
	switch seed % 4 {
	case 1:
		args = append(args, "rate=20000")
	case 2:
		args = append(args, "rate=200000", "names="+call)
	case 3:
		rate := "rate=900000"
		if call == "cuCtxPopCurrent" || call == "cuThreadExchangeStreamCaptureMode" { // without it a thread's state cannot be restored
			rate = "rate=200000"
		}
		args = append(args, rate, "names="+call)
	}
	return args
}

// TestEveryFunction checks that the random programs call every function of gm.h.
func TestEveryFunction(t *testing.T) {
	header, err := os.ReadFile("gm.h")
	if err != nil {
		t.Fatal(err)
	}
	var programs string
	for _, name := range []string{"testdata/random.c", "testdata/random_swap.c", "testdata/random_keys.c", "testdata/random_objects.c"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		programs += string(text)
	}
	functions := regexp.MustCompile(`(?m)^[a-z].*?\b(gm_[a-z_]+)\(`).FindAllStringSubmatch(string(header), -1)
	if len(functions) < 25 {
		t.Fatalf("gm.h has %d functions", len(functions))
	}
	for _, f := range functions {
		if !strings.HasPrefix(f[0], "typedef") && !strings.Contains(programs, f[1]+"(") {
			t.Errorf("no random program calls %s", f[1])
		}
	}
}
