package capture

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gm/internal/capture/live"
	"gm/internal/capture/ring"
)

// training makes tensors with the stub of PyTorch, and waits to be watched until its tensors were taken.
const training = `
import os, sys, time
import torch
kept = [torch.empty_bytes(3 << 20) for i in range(4)]
optimizer = torch.optim.Optimizer()
optimizer.step()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
`

// TestLive asks a session that runs what lives in its process.
func TestLive(t *testing.T) {
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to run a program with")
	}
	stub, err := filepath.Abs("../torch/gmtrace/testdata/stub")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(b.libraries.Env(filepath.Join(t.TempDir(), "counts")), "PYTHONPATH="+stub, "STUB_TORCH_CUDA=1", "PYTHONDONTWRITEBYTECODE=1") {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	s, err := NewSession(Options{Library: b.preload, PythonStacks: true, Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	program, enough := filepath.Join(t.TempDir(), "train.py"), filepath.Join(t.TempDir(), "enough")
	if err := os.WriteFile(program, []byte(training), 0o666); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if status, err := s.Run([]string{python, program, enough}, os.Stderr); status != 0 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	})
	v := askUntilTensors(t, s.Folder())
	if err := os.WriteFile(enough, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	if v != nil {
		checkTraining(t, v)
	}
	if last := s.View(); len(last.Processes) != 1 || !last.Processes[0].Ended {
		t.Errorf("at the end %+v", last)
	}
	if _, err := live.Ask(s.Folder()); err != live.ErrEnded {
		t.Errorf("after the end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// askUntilTensors asks until the tensors of the program are there, and its step, which may be told of later.
func askUntilTensors(t *testing.T, folder string) *live.View {
	for range 300 {
		v, err := live.Ask(folder)
		if err != nil {
			t.Error(err)
			return nil
		}
		if len(v.Processes) > 0 && v.Processes[0].Steps > 0 && len(v.Processes[0].Devices) > 0 && v.Processes[0].Devices[0].Framework != nil {
			return v
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("no tensors after 15 s")
	return nil
}

func checkTraining(t *testing.T, v *live.View) {
	p := v.Processes[0]
	if v.PID != os.Getpid() || len(v.Command) != 3 || p.Ended || p.Steps != 1 || p.History != "on" || p.Rank != -1 || len(p.Devices) != 1 {
		t.Errorf("%+v", v)
	}
	d := p.Devices[0]
	if d.Framework.Live != 12<<20 || d.Framework.Allocs != 4 || d.Framework.Reserved < 12<<20 {
		t.Errorf("tensors: %+v", d.Framework)
	}
	if s := d.Framework.Stacks; len(s) != 1 || !strings.Contains(s[0].Name, "<listcomp>") && !strings.Contains(s[0].Name, "<module>") {
		t.Errorf("stacks: %+v", s)
	}
	if d.Driver == nil || d.Driver.Live < d.Framework.Reserved || d.Total == 0 || d.Name == "" {
		t.Errorf("driver: %+v", d)
	}
}

// BenchmarkRecords takes in allocs and frees of 1000 blocks that live at a time, into the account of what lives.
func BenchmarkRecords(b *testing.B) {
	in := newInterpreter(newLiveRows(), nil)
	extra := make([]byte, 64)
	copy(extra, "/usr/lib/libtorch_cuda.so")
	in.take(&ring.Record{Kind: ring.Library, A: 0x1000, B: 0x9000, Extra: extra})
	frames := binary.LittleEndian.AppendUint64(nil, 0x2000)
	for _, c := range []struct {
		name  string
		extra []byte
	}{{"stacks=no", nil}, {"stacks=yes", frames}} {
		b.Run(c.name, func(b *testing.B) {
			for i := uint64(0); b.Loop(); i++ {
				for _, r := range []ring.Record{
					{Kind: ring.Alloc, A: i, B: 1 << 20, C: 1}, {Kind: ring.Free, A: i - 1000, B: 1 << 20},
				} {
					r.TimeNS, r.Caller, r.Thread, r.Extra = int64(i)*1000, 0x2000, 7, c.extra
					in.take(&r)
				}
			}
			b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
