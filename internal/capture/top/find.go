package top

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gm/internal/capture/live"
	"gm/internal/cli"
	"gm/internal/cli/command"
	"gm/internal/report"
)

// Capture is a running capture: its folder and its view.
type Capture struct {
	Folder string
	View   *live.View
}

// ErrNone means that no capture is running.
var ErrNone = errors.New("no capture is running")

// Find returns the capture that records process pid, or with 0 the only running capture. If there are several, it lists them and fails.
func Find(c *cli.Context, pid int) (Capture, error) {
	all := Captures(append(environOf(pid, "TMPDIR"), command.TempDir()))
	if pid != 0 {
		return captureOf(pid, all)
	}
	switch len(all) {
	case 0:
		return Capture{}, fmt.Errorf("%w in %s: start one with gmtrace run, or gmtrace top --run", ErrNone, command.TempDir())
	case 1:
		return all[0], nil
	}
	list := report.Table{Titles: []string{"pid", "command"}}
	for _, f := range all {
		list.Add(strconv.Itoa(f.View.PID), strings.Join(f.View.Command, " "))
	}
	if err := list.Write(c.Err); err != nil {
		return Capture{}, err
	}
	return Capture{}, fmt.Errorf("%d captures are running: name one, as in gmtrace top %d", len(all), all[0].View.PID)
}

// Captures returns the running captures, found in the folders of temporary files where they may be.
func Captures(temporary []string) []Capture {
	slices.Sort(temporary)
	var all []Capture
	for _, t := range slices.Compact(temporary) {
		for _, folder := range live.Folders(t) {
			if view, err := live.Ask(folder); err == nil {
				all = append(all, Capture{folder, view})
			}
		}
	}
	return all
}

func captureOf(pid int, all []Capture) (Capture, error) {
	for _, f := range all {
		if f.View.PID == pid || slices.ContainsFunc(f.View.Processes, func(p live.Process) bool { return p.PID == pid }) {
			return f, nil
		}
	}
	for _, folder := range environOf(pid, "GMTRACE_DIR") {
		view, err := live.Ask(folder)
		if err == nil {
			return Capture{folder, view}, nil
		} else if !errors.Is(err, live.ErrEnded) {
			return Capture{}, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return Capture{}, fmt.Errorf("process %d is not captured by gmtrace", pid)
}

// environOf returns the value of a variable in the environment with which a process was started; none if it is unknown or empty.
func environOf(pid int, name string) []string {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	for text := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := strings.CutPrefix(string(text), name+"="); ok && value != "" {
			return []string{value}
		}
	}
	return nil
}
