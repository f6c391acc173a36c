package capture

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
)

// trainingScript is a program in Python that uses the stub of PyTorch in internal/torch/gmtrace/testdata, over the fake driver.
const trainingScript = `
import random
import time
import torch

rng, live, optimizer = random.Random(3), [], torch.optim.Optimizer()
for step in range(7):
    for _ in range(300):
        if rng.random() < 0.55 or not live:
            live.append(torch.empty_bytes(rng.choice([700, 40000, 3 << 20, 30 << 20]), 0, rng.choice([0, 0, 5])))
        else:
            live.pop(rng.randrange(len(live)))
    live.clear()
    optimizer.step()
    time.sleep(0.15)
`

// workerScript forks a process that touches CUDA first, and ends without atexit, as those of multiprocessing do.
const workerScript = `
import multiprocessing

def work():
    import torch
    tensors = [torch.empty_bytes(1000) for _ in range(211)]

multiprocessing.set_start_method("fork")
worker = multiprocessing.Process(target=work)
worker.start()
worker.join()
`

func TestMultiprocessing(t *testing.T) {
	c, log := runPython(t, Options{}, workerScript)
	if got := c.traces[0].framework(); !slices.Equal(got, log) {
		t.Errorf("%d rows of the framework, the stub logged %d, or others; warnings %q", len(got), len(log), c.warnings)
	}
}

func runTraining(t *testing.T, o Options) (*captured, []logged) {
	t.Helper()
	return runPython(t, o, trainingScript)
}

// runPython captures a program and returns what the stub of PyTorch itself logged.
func runPython(t *testing.T, o Options, text string) (*captured, []logged) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stub, err := filepath.Abs("../torch/gmtrace/testdata/stub")
	if err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	c := run(t, o, []string{"PYTHONPATH=" + stub, "STUB_TORCH_CUDA=1", "STUB_TORCH_LOG=" + logs}, python, script)
	if c.status != 0 || len(c.traces) != 1 {
		t.Fatalf("exit status %d, %d traces; %q", c.status, len(c.traces), c.warnings)
	}
	return c, readLog(t, logs)
}

// logged is an entry of the history, as the stub made it.
type logged struct {
	Action string `json:"action"`
	Addr   uint64 `json:"addr"`
	Size   int64  `json:"size"`
	Stream int64  `json:"stream"`
}

func readLog(t *testing.T, folder string) []logged {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "log.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("logs of the stub: %q, %v", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []logged
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e logged
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.Action != "snapshot" {
			list = append(list, e)
		}
	}
	return list
}

// framework returns the framework's rows of a trace, as the stub logs them.
func (c *captive) framework() []logged {
	var list []logged
	for _, e := range c.rows {
		if e.Level == trace.LevelFramework && e.Op != trace.OpMark && e.Op != trace.OpSnapshot {
			list = append(list, logged{e.Op.String(), e.Addr, e.Size, e.Stream})
		}
	}
	return list
}

// Both levels stand in one trace: all that PyTorch logged, in its order, segments behind the memory they are made of, and a mark for
// each step; so too where PyTorch's clock goes behind.
func TestFramework(t *testing.T) {
	for _, behind := range []string{"0", "3000"} {
		t.Run(behind, func(t *testing.T) { checkFramework(t, behind) })
	}
}

// checkFramework lets PyTorch's clock go behind the driver's by some microseconds.
func checkFramework(t *testing.T, behind string) {
	t.Setenv("GMTRACE_HISTORY", "2000")
	t.Setenv("STUB_TORCH_BEHIND", behind)
	c, log := runTraining(t, Options{})
	c.check(t)
	p := &c.traces[0]
	if got := p.framework(); !slices.Equal(got, log) {
		t.Fatalf("%d rows of the framework, the stub logged %d, or others", len(got), len(log))
	}
	held, marks := map[uint64]int64{}, 0
	for i, e := range p.rows {
		switch tag := p.texts(e.Tag); {
		case e.Op == trace.OpAlloc && tag == trace.DriverTag(trace.KindMemory, "ctypes"):
			held[e.Addr] = e.Size
		case e.Op == trace.OpSegmentAlloc && e.Level == trace.LevelFramework && held[e.Addr] != e.Size:
			t.Errorf("row %d: a segment of %d bytes, the driver gave %d there", i, e.Size, held[e.Addr])
		case e.Op == trace.OpMark && tag == "step":
			marks++
		}
	}
	if marks != 7 {
		t.Errorf("%d steps are marked, want 7", marks)
	}
	if len(c.warnings) != 0 {
		t.Errorf("warnings: %q", c.warnings)
	}
}

// What PyTorch's ring could not hold is told.
func TestHeadless(t *testing.T) {
	t.Setenv("GMTRACE_HISTORY", "200")
	c, _ := runTraining(t, Options{})
	if !slices.ContainsFunc(c.warnings, func(w string) bool { return strings.Contains(w, "lost") }) {
		t.Errorf("entries were lost, and the warnings are %q", c.warnings)
	}
}

// Of a window only the steps in it are there, behind what was there before.
func TestSteps(t *testing.T) {
	c, log := runTraining(t, Options{Steps: &Steps{From: 2, To: 4}})
	p := &c.traces[0]
	marks := 0
	for _, e := range p.rows {
		if e.Op == trace.OpMark && p.texts(e.Tag) == "step" {
			marks++
		}
	}
	if marks != 2 {
		t.Errorf("%d steps are marked, want 2", marks)
	}
	var got []logged
	for _, e := range p.rows {
		early := e.Tag != 0 && p.texts(e.Tag) == trace.PreexistingTag(0)
		if e.Level == trace.LevelFramework && e.Op == trace.OpAlloc && !early {
			got = append(got, logged{"alloc", e.Addr, e.Size, e.Stream})
		}
	}
	var allocs []logged
	for _, e := range log {
		if e.Action == "alloc" {
			allocs = append(allocs, e)
		}
	}
	if !slices.Equal(got, allocs) || len(got) < 250 || len(got) > 400 { // of some 165 in each step
		t.Errorf("%d allocations in the window, the stub logged %d, or others", len(got), len(allocs))
	}
	if tags := p.tags(); !slices.Contains(tags, "context") {
		t.Errorf("the context, older than the window, is not there: %q", tags)
	}
}
