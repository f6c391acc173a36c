package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/overview"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// row is a row of a trace, with its texts.
type row struct {
	op         trace.Op
	id, size   int64
	addr       uint64
	stack, tag string
	framework  bool
}

const (
	ofTrain = "<module> (/home/me/train.py:30);step (/home/me/train.py:12);forward (/usr/lib/python3/dist-packages/torch/nn/modules/linear.py:134)"
	ofNCCL  = "<module> (/home/me/train.py:30);init (/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:88);ncclCommInitRank (??:0)"
)

// driverRows is what a process does with the driver alone.
var driverRows = []row{
	{op: trace.OpAlloc, id: 1, size: 500 * mib, tag: "context"},
	{op: trace.OpSample, size: 520 * mib, tag: "card"},
	{op: trace.OpSample, size: 502 * mib, tag: "process"},
	{op: trace.OpAlloc, id: 2, size: 12 * mib, tag: "module by=cublas"},
	{op: trace.OpAlloc, id: 3, size: 20 * mib, addr: 0x1000, tag: "memory by=pytorch", stack: ofTrain},
	{op: trace.OpAlloc, id: 4, size: 8 * mib, tag: "physical by=nccl", stack: ofNCCL},
	{op: trace.OpSegmentMap, size: 8 * mib, addr: 0x9000, tag: "physical by=nccl"},
	{op: trace.OpAlloc, id: 5, size: 4 * gib, tag: "pinned by=pytorch"},
	{op: trace.OpSegmentAlloc, size: 64 * mib, tag: "pool by=rapids"},
	{op: trace.OpAlloc, id: 6, size: 50 * mib, tag: "pool by=rapids"},
	{op: trace.OpSample, size: 640 * mib, tag: "card"},
	{op: trace.OpSample, size: 610 * mib, tag: "process"},
	{op: trace.OpFree, id: 6},
	{op: trace.OpSegmentFree, size: 64 * mib, tag: "pool by=rapids"},
	{op: trace.OpOOM, size: 90 * gib, addr: 3 * gib, tag: "memory by=pytorch", stack: ofTrain},
	{op: trace.OpSegmentUnmap, size: 8 * mib, addr: 0x9000, tag: "physical by=nccl"},
	{op: trace.OpFree, id: 4},
	{op: trace.OpMark, tag: "step"},
	{op: trace.OpMark, tag: "step"},
}

// frameworkRows is what a framework's allocator does in one of its segments.
var frameworkRows = []row{
	{op: trace.OpSegmentAlloc, size: 20 * mib, addr: 0x1000, framework: true},
	{op: trace.OpAlloc, id: 7, size: 9 * mib, addr: 0x1000, stack: ofTrain, framework: true},
	{op: trace.OpAlloc, id: 8, size: 7 * mib, addr: 0x901000, framework: true},
	{op: trace.OpFree, id: 8, framework: true},
	{op: trace.OpOOM, size: 30 * mib, addr: 2 * mib, stack: ofTrain, framework: true},
}

// file writes a trace, a row each 10 ms, and returns its path.
func file(t *testing.T, rows ...row) string {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Meta{Source: "gmtrace run", Command: "python train.py"})
	var b trace.Batch
	for i, r := range rows {
		e := trace.Event{TimeNS: int64(i) * 1e7, Op: r.op, ID: r.id, Size: r.size, Addr: r.addr, Level: trace.LevelDriver}
		if r.framework {
			e.Level = trace.LevelFramework
		}
		e.Stack, e.Tag = w.Strings().Code(r.stack), w.Strings().Code(r.tag)
		b.Append(e)
	}
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// output runs the command.
func output(t *testing.T, cmd showCmd) string {
	t.Helper()
	var out bytes.Buffer
	if err := cmd.Run(&cli.Context{Tool: "gmtrace", Out: &out, Err: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestShow compares what is printed with testdata/NAME.golden.
func TestShow(t *testing.T) {
	both := slices.Concat(driverRows, frameworkRows)
	for name, c := range map[string]struct {
		cmd  showCmd
		rows []row
	}{
		"show-driver":     {showCmd{}, driverRows},
		"show-both":       {showCmd{}, both},
		"show-unsampled":  {showCmd{}, driverRows[3:8]},
		"show-card":       {showCmd{}, driverRows[:2]},
		"show-top-driver": {showCmd{Top: 3}, driverRows},
		"show-top-both":   {showCmd{Top: 3}, both},
		"show-stackless": {showCmd{Top: 1}, []row{
			{op: trace.OpAlloc, id: 1, size: mib, framework: true}, {op: trace.OpAlloc, id: 2, size: mib, framework: true},
			{op: trace.OpAlloc, id: 3, size: 9 * mib, framework: true}, {op: trace.OpFree, id: 1, framework: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.cmd.File = file(t, c.rows...)
			got := strings.ReplaceAll(output(t, c.cmd), c.cmd.File, "FILE")
			want, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("wanted -, printed +\n%s", diff)
			}
			for line := range strings.Lines(got) {
				if utf8.RuneCountInString(line) > 100 {
					t.Errorf("over 100 columns: %s", line)
				}
			}
		})
	}
}

// TestShowTopJSON: programs get whole stacks.
func TestShowTopJSON(t *testing.T) {
	var all []overview.Top
	text := output(t, showCmd{File: file(t, slices.Concat(driverRows, frameworkRows)...), Top: 1, JSON: true})
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || len(all[0].Moments) != 2 {
		t.Fatalf("%+v", all)
	}
	peak, oom := all[0].Moments[0], all[0].Moments[1]
	want := []overview.Group{{Name: ofTrain, Bytes: 9 * mib, Blocks: 1, Share: 9. / 16}}
	if diff := cmp.Diff(want, peak.Stacks); diff != "" {
		t.Error(diff)
	}
	if oom.Failed == nil || oom.Failed.Size != 30*mib || oom.Failed.Free != 2*mib || oom.Failed.Stack != ofTrain || oom.Failed.By != "" {
		t.Errorf("the failed request is %+v", oom.Failed)
	}
}

func TestTopFlag(t *testing.T) {
	for args, want := range map[string]topFlag{
		"show": 0, "show --top": 10, "show --top 3": 3, "show --top=4 x": 4, "show --top x": 10, "show x --top --json": 10, "show --top 0": -1,
		"show --top=x": -1, "show --top -1": -1,
	} {
		var g grammar
		parser, err := kong.New(&g, kong.Exit(func(int) {}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(strings.Fields(args))
		if got := g.Show.Top; err == nil && got != want || err != nil && want >= 0 {
			t.Errorf("%s: %d, error %v, want %d", args, got, err, want)
		}
	}
}
