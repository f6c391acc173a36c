package top

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func aMachine() *Machine {
	busy := 97
	return &Machine{GPUs: []GPU{
		{Name: "NVIDIA H200", Total: 140 * gib, Used: 70 * gib, Busy: &busy, Processes: []GPUProcess{
			{PID: 5000, Used: 40 * gib, Command: "/usr/bin/python train.py --model large", Tools: []string{"gmstitch"}},
			{PID: 77, Used: 29 * gib},
			{PID: 5001, Used: -1, Command: "python", Tools: []string{"gmtrace", "gmswap"}},
		}},
		{UUID: "GPU-1", Total: 0, Problem: "ERROR_GPU_IS_LOST"},
	}}
}

func TestMachinePage(t *testing.T) {
	const want = `GPU    used       of  share  busy  name
0    70 GiB  140 GiB  50.0%   97%  NVIDIA H200
1       0 B      0 B               ERROR_GPU_IS_LOST

GPU   pid     used  share              gm  command
0    5000   40 GiB  28.6%        gmstitch  python train.py --model large
0      77   29 GiB  20.7%                  (not to be seen from here)
0    5001  unknown         gmtrace gmswap  python
`
	var got strings.Builder
	for _, line := range aMachine().lines(plainWidth, plainHeight, "") {
		got.WriteString(strings.TrimRight(line.text, " ") + "\n")
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("wanted -, got +\n%s", diff)
	}
}

// TestSmallMachinePages checks that a page fits into terminals of any size, with its keys in the last line.
func TestSmallMachinePages(t *testing.T) {
	for width := 1; width < 90; width++ {
		for height := 1; height < 12; height++ {
			lines := aMachine().lines(width, height, "q quit")
			if len(lines) != height || lines[height-1].text != cut("q quit", width) {
				t.Fatalf("%d x %d: %d lines, the last %q", width, height, len(lines), lines[len(lines)-1].text)
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line.text) > width {
					t.Fatalf("%d x %d: %q", width, height, line.text)
				}
			}
		}
	}
}

// TestProcessOfOurOwn reads the command line of this process, and of one that is not there.
func TestProcessOfOurOwn(t *testing.T) {
	if got := commandOf(os.Getpid()); !strings.Contains(got, "test") {
		t.Errorf("this test is %q", got)
	}
	if got, tools := commandOf(1<<30), toolsOf(1<<30); got != "" || len(tools) > 0 {
		t.Errorf("a process that is not there: %q, %q", got, tools)
	}
}
