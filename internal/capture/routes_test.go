package capture

import (
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
)

// tags returns the tags of the allocs of a trace, each once.
func (c *captive) tags() []string {
	var tags []string
	for _, e := range c.rows {
		if tag := c.texts(e.Tag); e.Op == trace.OpAlloc && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// What a library asks of the runtime is the library's, and not the runtime's.
func TestAttribution(t *testing.T) {
	for program, want := range map[string][]string{
		"shared": {"context", "managed by=shared", "memory by=shared", "pinned by=shared", "pool by=shared"},
		"static": {"context", "managed by=static", "memory by=static", "pinned by=static", "pool by=static"},
	} {
		for _, audit := range []bool{false, true} {
			c := run(t, Options{Audit: audit}, nil, program)
			got := c.traces[0].tags()
			got[0], _, _ = strings.Cut(got[0], " by=") // of the runtime, which the constructor started
			if !slices.Equal(got, want) {
				t.Errorf("%s, audit %v: %q, want %q", program, audit, got, want)
			}
		}
	}
}

func TestOwner(t *testing.T) {
	for path, want := range map[string]string{
		"":                                       "",
		"/usr/lib/libnccl.so.2.27.7":             "nccl",
		"/x/torch/lib/libc10_cuda.so":            "pytorch",
		"/x/torch/lib/libtorch_cuda.so":          "pytorch",
		"/x/nvidia/cublas/lib/libcublasLt.so.13": "cublas",
		"/x/cupy_backends/cuda/api/runtime.cpython-312-x86_64-linux-gnu.so": "cupy",
		"/x/jax_plugins/xla_cuda13/xla_cuda_plugin.so":                      "jax",
		"/usr/lib/x86_64-linux-gnu/libfoo-1.2.so.3":                         "foo-1.2",
		"/home/me/train": "train",
	} {
		if got := owner(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// What a call that failed did not take away lives on. Most of the programs end at such a call.
func TestFailures(t *testing.T) {
	for fail, way := range map[string]string{
		"cuMemFree:1=1,cuMemFree:2=1": "refused",
		"cuMemFree:3=1":               "linked",
		"cuMemFree:1=700":             "pools",
		"cuMemRelease:2=1":            "physical",
		"cuMemUnmap:3=1":              "physical",
		"cuMemFreeAsync:2=1":          "pools",
		"cuMemFreeHost:1=1":           "host",
		"cuMemHostUnregister:1=1":     "host",
		"cuArrayDestroy:1=1":          "others",
		"cuMemMap:2=1":                "physical",
		"cuMemCreate:4=1":             "physical",
		"cuCtxDestroy:1=1":            "contexts",
	} {
		c := run(t, Options{}, []string{"GM_FAKE_FAIL=" + fail}, "driver", way)
		sums := c.sums(t)
		for kind, want := range c.counted() {
			got := uint64(0)
			if s := sums[kind]; s != nil {
				got = s.Current
			}
			if got != want.Current {
				t.Errorf("%s, %s: %d bytes of %s live at the end, the driver counted %d", fail, way, got, kind, want.Current)
			}
		}
	}
}

func TestOOMRows(t *testing.T) {
	c := run(t, Options{}, nil, "driver", "refused")
	var sizes []int64
	for _, e := range c.traces[0].rows {
		if e.Op != trace.OpOOM {
			continue
		}
		sizes = append(sizes, e.Size)
		if want := int64(140 << 30); int64(e.Addr) < want || e.Level != trace.LevelDriver {
			t.Errorf("%d bytes free, level %v, want at least %d", e.Addr, e.Level, want)
		}
	}
	if want := []int64{1 << 45, 1 << 44}; !slices.Equal(sizes, want) {
		t.Errorf("requests that failed: %v, want %v", sizes, want)
	}
}

func TestOnlyOOM(t *testing.T) {
	if c := run(t, Options{OnlyOOM: true}, nil, "driver", "linked"); len(c.traces) != 0 {
		t.Errorf("%d traces of a program that had memory enough", len(c.traces))
	}
	if c := run(t, Options{OnlyOOM: true}, nil, "driver", "refused"); len(c.traces) != 1 {
		t.Errorf("%d traces of a program that was refused memory", len(c.traces))
	}
}

func TestStatus(t *testing.T) {
	for words, want := range map[string]int{"driver": 0, "driver _exit": 5, "driver abort": 134, "driver kill": 137, "driver refused": 0} {
		if c := run(t, Options{}, nil, strings.Fields(words)...); c.status != want {
			t.Errorf("%s: exit status %d, want %d", words, c.status, want)
		}
	}
}

// A child that was forked after its parent touched CUDA has no trace; a program that was executed has one of its own.
func TestProcesses(t *testing.T) {
	for words, want := range map[string]int{"driver linked children": 1, "driver exec": 1, "driver linked image": 2} {
		if c := run(t, Options{}, nil, strings.Fields(words)...); len(c.traces) != want {
			t.Errorf("%s: %d traces, want %d", words, len(c.traces), want)
		}
	}
}

func TestNativeStacks(t *testing.T) {
	c := run(t, Options{NativeStacks: true}, nil, "driver", "linked")
	found := false
	for _, e := range c.traces[0].rows {
		stack := c.traces[0].texts(e.Stack)
		found = found || strings.Contains(stack, "main (driver)") && strings.Contains(stack, "churn (driver)")
		if strings.Contains(stack, shimName) {
			t.Fatalf("the preload library is in the stack: %s", stack)
		}
	}
	if !found {
		t.Errorf("no stack holds main and churn")
	}
}

func TestMetadata(t *testing.T) {
	c := run(t, Options{}, []string{"RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8"}, "driver", "linked", "an argument")
	m := c.traces[0].meta
	if m.Rank != 3 || m.LocalRank != 1 || m.WorldSize != 8 {
		t.Errorf("rank %d, local %d, of %d", m.Rank, m.LocalRank, m.WorldSize)
	}
	if !strings.HasSuffix(m.Command, "/driver linked 'an argument'") {
		t.Errorf("command %q", m.Command)
	}
	if len(m.Devices) != 1 || m.Devices[0] == "" || m.Capacity < 140<<30 || m.PID == 0 || m.Host == "" {
		t.Errorf("metadata %+v", m)
	}
}
