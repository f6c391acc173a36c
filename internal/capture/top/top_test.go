package top

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"gm/internal/capture/live"
)

const (
	mib = 1 << 20
	gib = 1 << 30

	atNS    = int64(1_700_000_000e9)
	ofGPT   = "<module> (/home/me/train.py:30);step (/home/me/train.py:12);forward (/usr/lib/python3/dist-packages/transformers/models/gpt2/modeling_gpt2.py:608);forward (/usr/lib/python3/dist-packages/torch/nn/modules/linear.py:134)"
	ofPanic = "main (/home/me/\x1b[2Jtrain.py:1);\x07bell (/home/me/日本語のとても長い名前のファイルで端末の幅を超えるもの.py:1)"
)

// oneProcess is a process that trains.
func oneProcess(pid, rank int) live.Process {
	framework := &live.Level{
		Live: 39 * gib, Peak: 40 * gib, Reserved: 62 * gib, PeakReserved: 63 * gib, Allocs: 12345, Rate: 12034.4, UntilNS: atNS - 1e9,
		Streams: []live.Group{{Name: "0", Live: 38 * gib, Peak: 39 * gib, Blocks: 1000}, {Name: "140212", Live: gib, Peak: 2 * gib, Blocks: 3}},
		Stacks:  []live.Group{{Name: ofGPT, Live: 20 * gib, Peak: 21 * gib, Blocks: 96}, {Name: ofPanic, Live: 7 * mib, Peak: 9 * mib, Blocks: 2}},
	}
	for i := range 48 {
		name := fmt.Sprintf("<module> (/home/me/train.py:30);layer%d (/home/me/model.py:%d)", i, i)
		framework.Stacks = append(framework.Stacks, live.Group{Name: name, Live: mib, Peak: mib, Blocks: 1})
	}
	driver := &live.Level{
		Live: 62*gib + 512*mib, Peak: 63 * gib, Allocs: 321, Rate: 0.4, Refused: 1, UntilNS: atNS,
		Tags: []live.Group{
			{Name: "memory by pytorch", Live: 62 * gib, Peak: 63 * gib, Blocks: 300}, {Name: "pinned by pytorch", Live: 100 * gib, Peak: 100 * gib, Blocks: 1, Beside: true},
			{Name: "context", Live: 512 * mib, Peak: 512 * mib, Blocks: 1},
		},
	}
	return live.Process{
		PID: pid, Command: "/usr/bin/python train.py --model a-model-with-a-very-long-name-that-fits-nowhere --rank " + fmt.Sprint(rank),
		Rank: rank, WorldSize: 8, StartNS: atNS - 754e9, Steps: 1234, History: "on",
		Devices: []live.Device{{
			Ordinal: int32(max(rank, 0)), Name: "NVIDIA H200", Total: 141 * gib, Used: 70 * gib, Process: 64 * gib, Framework: framework, Driver: driver,
		}},
	}
}

func aView(processes ...live.Process) *live.View {
	return &live.View{
		PID: 4242, Command: []string{"torchrun", "--nproc-per-node", "8", "train.py"}, StartNS: atNS - 760e9, NowNS: atNS, Processes: processes,
	}
}

func ranks(n int) (all []live.Process) {
	for i := range n {
		all = append(all, oneProcess(5000+i, i))
	}
	return all
}

// TestPage compares pages of both sizes with testdata/top-NAME.golden.
func TestPage(t *testing.T) {
	alone := oneProcess(5000, -1)
	troubled := oneProcess(5001, -1)
	troubled.History, troubled.Waits, troubled.WaitedNS, troubled.Lost = "ended: history.5001.3.pickle: cut off", 3, 12e6, 1
	troubled.Ended = true
	early := oneProcess(5002, -1)
	early.Devices[0].Framework = nil
	driverOnly := early
	driverOnly.History = ""
	stackless := oneProcess(5003, -1)
	stackless.Devices[0].Framework.Stacks = []live.Group{{Live: 39 * gib, Peak: 40 * gib, Blocks: 1000}}
	stackless.Devices[0].Framework.UntilNS = atNS - 9e9
	wide := oneProcess(5004, 0)
	wide.Devices = append(wide.Devices, oneProcess(5004, 1).Devices...)
	var output []string
	for i := range 30 {
		output = append(output, fmt.Sprintf("step %d, loss 0.3", i))
	}
	many := aView(ranks(12)...)
	many.Omitted = 5
	for name, p := range map[string]page{
		"nothing":    {},
		"no-process": {view: aView()},
		"stacks":     {view: aView(alone)},
		"streams":    {view: aView(alone), table: byStream},
		"tags":       {view: aView(alone), table: byTag},
		"stackless":  {view: aView(stackless), table: byStack},
		"troubled":   {view: aView(troubled), problem: live.ErrBusy.Error()},
		"early":      {view: aView(early)},
		"driver":     {view: aView(driverOnly), table: byStream},
		"many":       {view: many, chosen: processKey{5009, atNS - 754e9}},
		"devices":    {view: aView(wide)},
		"output":     {view: aView(alone), output: output},
	} {
		t.Run(name, func(t *testing.T) {
			p.keys = footer
			got := pageText(t, p, 80, 24) + strings.Repeat("=", 120) + "\n" + pageText(t, p, 120, 40)
			want, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("wanted -, got +\n%s", diff)
			}
		})
	}
}

// pageText returns a page as text, with marks before the bars.
func pageText(t *testing.T, p page, width, height int) string {
	t.Helper()
	lines := p.lines(width, height)
	if len(lines) > height {
		t.Errorf("%d lines, at most %d", len(lines), height)
	}
	var text strings.Builder
	for _, line := range lines {
		if n := utf8.RuneCountInString(line.text); n > width {
			t.Errorf("%d columns, at most %d: %s", n, width, line.text)
		}
		fmt.Fprintf(&text, "%s%s\n", map[bool]string{true: "# ", false: "  "}[line.bar], strings.TrimRight(line.text, " "))
	}
	return text.String()
}

// TestSmallPages: a page fits wherever there is a terminal.
func TestSmallPages(t *testing.T) {
	for width := 1; width < 90; width += 7 {
		for height := 1; height < 30; height++ {
			p := page{view: aView(ranks(9)...), keys: footer, output: []string{"a", strings.Repeat("long ", 50)}}
			pageText(t, p, width, height)
		}
	}
}

func TestPress(t *testing.T) {
	p := page{view: aView(ranks(3)...)}
	for _, c := range []struct {
		keys  string
		want  int // the number of the process
		table byte
	}{
		{"", 0, 0}, {"\t", 1, 0}, {"\x1b[B\x1bOB", 0, 0}, {"\x1b[A", 2, 0}, {"\x1b[Zs", 1, byStream}, {"\x1b[5~", 1, byStream}, {"tx", 1, byTag}, {"k", 1, byStack},
	} {
		for _, k := range parseKeys(c.keys) {
			p.press(k)
		}
		if p.index() != c.want || p.table != c.table {
			t.Errorf("after %q: process %d, table %q; want %d, %q", c.keys, p.index(), p.table, c.want, c.table)
		}
	}
	p.view = aView(ranks(1)...)
	if p.index() != 0 {
		t.Error("a process that is gone is still chosen")
	}
	p = page{}
	p.press(keyNext)
	if p.index() != -1 {
		t.Error("there is no process to choose")
	}
}

func TestLastLines(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := Program{log: f}
	for text, want := range map[string][]string{
		"":                                    nil,
		"a\nb":                                {"a", "b"},
		"a\tb\r\n10%\r20%\r\n\n":              {"a    b", "20%"},
		strings.Repeat("x", 17<<10) + "\ny\n": {strings.Repeat("x", 16<<10-3), "y"},
	} {
		if err := f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.lastLines()); diff != "" {
			t.Errorf("%.20q: %s", text, diff)
		}
	}
}
