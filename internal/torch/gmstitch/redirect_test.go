package gmstitch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/torch/snapshot"
)

func TestStats(t *testing.T) {
	eachPython(t, func(s *session) {
		s.prints(`
import inspect, torch
from torch.cuda import max_memory_allocated, memory_allocated  # before the allocator is put in
t = torch.empty_bytes(1000)
u = torch.empty_bytes(500)
del u
print(memory_allocated(), max_memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved(0))
torch.cuda.reset_peak_memory_stats()
torch.cuda.reset_accumulated_memory_stats()
print(max_memory_allocated(), memory_allocated(1), inspect.signature(memory_allocated))
stats = torch.cuda.memory_stats()
print(stats["num_device_alloc"], stats["num_device_free"], stats["max_split_size"], stats["gm.stitches"], len(stats))
print(len(torch.cuda.memory_summary().splitlines()))
print(torch._C._accelerator_getDeviceStats(0)["allocated_bytes"]["all"]["current"])
torch._C._accelerator_resetPeakStats(0)
torch._C._accelerator_resetAccumulatedStats(0)
`, "1000 1500 1000 1500\n1000 0 (device=None)\n2 1 -1 0 125\n30\n1000\n", "")
	})
}

// TestSnapshot dumps one, which the importer takes as one of PyTorch's.
func TestSnapshot(t *testing.T) {
	eachPython(t, func(s *session) {
		file := filepath.Join(t.TempDir(), "snapshot.pickle")
		s.prints(`
import sys, torch
held = [torch.empty_bytes(1000 + i, 0, i % 2) for i in range(600)]
s = torch.cuda.memory._snapshot()
print(sorted(s), len(s["segments"]), s["device_traces"])
print(sorted(s["segments"][0]), sorted(s["segments"][0]["blocks"][0]))
print(len(torch.cuda.memory_snapshot()), len(torch.cuda.memory_snapshot((0, 7))), len(torch.cuda.memory_snapshot((9, 9))))
torch.cuda.memory._dump_snapshot("`+file+`")
`, `['allocator_settings', 'device_traces', 'external_annotations', 'segments'] 600 [[], []]
['active_size', 'address', 'allocated_size', 'blocks', 'device', 'frames', 'is_expandable', 'requested_size', 'segment_pool_id', 'segment_type', 'stream', 'total_size'] ['address', 'frames', 'requested_size', 'size', 'state']
600 300 0
`, "", "STUB_TORCH_DEVICES=2")
		if n := live(t, file); n != 600 {
			t.Errorf("the importer finds %d blocks, want 600", n)
		}
	})
}

// live imports a snapshot and returns how many blocks live at its end.
func live(t *testing.T, file string) int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j := snapshot.NewJoin(column.NewStrings())
	if err := j.Add(f, file); err != nil {
		t.Fatal(err)
	}
	rows := &rows{}
	if err := j.Write(rows, func(text string) { t.Log(text) }); err != nil {
		t.Fatal(err)
	}
	return rows.allocs
}

// rows counts those of a trace.
type rows struct{ allocs int }

func (r *rows) Write(b *trace.Batch) error {
	for _, op := range b.Op {
		if op == trace.OpAlloc {
			r.allocs++
		}
	}
	return nil
}

func TestBrokenSnapshot(t *testing.T) {
	s := newSession(t, "")
	for _, text := range []string{"[", "", "{}", `[{"address": 1`} {
		r := s.run("import torch\nt = torch.empty_bytes(1)\nfor i in range(2): print(torch.cuda.memory_snapshot())\n",
			"GM_SNAPSHOT="+text)
		if r.code != 0 || r.stdout != "[]\n[]\n" || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

func TestNoHistory(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import torch
t = torch.empty_bytes(1000)
record = torch.cuda.memory._record_memory_history
record(None)
record(False)
record(max_entries=10)
record("all")
record(True)
print(torch._C._cuda_isHistoryEnabled(), len(torch.cuda.memory._snapshot()["segments"]))
torch._C._cuda_attach_out_of_memory_observer(print)
`, "False 1\n", "gmstitch: the history of allocations is not recorded: gmstitch run --stats FILE keeps one\n"+
		"gmstitch: observers of a lack of memory are not called; OutOfMemoryError is raised as usual\n")
}

func TestBenchmark(t *testing.T) {
	const line = "gmstitch: cudnn.benchmark stays off: a pluggable allocator cannot serve it\n"
	for name, program := range map[string]string{
		"before": "torch.backends.cudnn.benchmark = True\ntorch.cuda.init()",
		"after":  "torch.cuda.init()\ntorch.backends.cudnn.benchmark = True\ntorch.backends.cudnn.benchmark = True",
		"flags":  "torch.cuda.init()\nprint(torch.backends.cudnn.set_flags(True)[0])",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, "")
			want := "False\n"
			if name == "flags" {
				want += want
			}
			s.prints("import torch\n"+program+"\nprint(torch.backends.cudnn.benchmark)", want, line)
		})
	}
	s := newSession(t, "")
	s.prints(`
import torch
torch.cuda.init()
torch.backends.cudnn.benchmark = False
try: torch.backends.cudnn.benchmark = 1
except TypeError as e: print(e)
`, "set_benchmark_cudnn expects a bool\n", "")
}

// TestCompiled switches the trees of graphs off, whenever they are imported.
func TestCompiled(t *testing.T) {
	const graphs = "gmstitch: torch.compile captures CUDA graphs one by one, without cudagraph_trees\n"
	s := newSession(t, "")
	s.prints(`
import torch, torch._inductor.config as config
print(config.triton.cudagraph_trees)
torch.cuda.init()
print(config.triton.cudagraph_trees)
`, "True\nFalse\n", "")
	s.prints(`
import torch
torch.cuda.init()
from torch._inductor import config
print(config.triton.cudagraph_trees)
import torch._inductor.cudagraph_trees
`, "False\n", graphs)
	s.prints(`
import torch
torch.cuda.init()
import torch._inductor.cudagraph_trees
from torch._inductor import config
print(config.triton.cudagraph_trees)
`, "True\n", "gmstitch: PyTorch's own allocator stays in place: GM_LIB does not name libgm.so\n", "GM_LIB=")
}

func TestSharing(t *testing.T) {
	s := newSession(t, "")
	s.prints(`
import torch
t = torch.empty_bytes(1000)
for i in range(2):
    try: torch.UntypedStorage()._share_cuda_()
    except RuntimeError as e: print(e)
`, "CUDAPluggableAllocator does not yet support shareIpcHandle. If you need it, please file an issue.\n"+
		"CUDAPluggableAllocator does not yet support shareIpcHandle. If you need it, please file an issue.\n",
		"gmstitch: CUDA tensors cannot be sent to other processes on this allocator: send tensors of the host instead\n")
}

// TestNoStandardError says nothing where there is nowhere to say it.
func TestNoStandardError(t *testing.T) {
	s := newSession(t, "")
	s.prints("import sys\nsys.stderr = None\nimport torch\ntorch.cuda.init()\ntorch.backends.cudnn.benchmark = True\nprint(1)", "1\n", "")
	s.prints("import sys\nsys.stderr.close()\nimport torch\ntorch.cuda.init()\ntorch.backends.cudnn.benchmark = True\nprint(1)", "1\n", "")
}
