package main

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

// found is a capture that runs.
type found struct {
	folder string
	view   *live.View
}

// findCapture returns the folder of the capture of a process, or with 0 of the only one, and what it knows.
func findCapture(c *cli.Context, pid int) (folder string, view *live.View, err error) {
	all := captures(append(environOf(pid, "TMPDIR"), command.TempDir()))
	if pid != 0 {
		return captureOf(pid, all)
	}
	switch len(all) {
	case 0:
		return "", nil, fmt.Errorf("no capture is running in %s: start one with gmtrace run, or gmtrace top --run", command.TempDir())
	case 1:
		return all[0].folder, all[0].view, nil
	}
	list := report.Table{Titles: []string{"pid", "command"}}
	for _, f := range all {
		list.Add(strconv.Itoa(f.view.PID), strings.Join(f.view.Command, " "))
	}
	if err := list.Write(c.Err); err != nil {
		return "", nil, err
	}
	return "", nil, fmt.Errorf("%d captures are running: name one, as in gmtrace top %d", len(all), all[0].view.PID)
}

// captures returns the captures that run, by the folders for temporary files where they may be.
func captures(temporary []string) []found {
	slices.Sort(temporary)
	var all []found
	for _, t := range slices.Compact(temporary) {
		for _, folder := range live.Folders(t) {
			if view, err := live.Ask(folder); err == nil {
				all = append(all, found{folder, view})
			}
		}
	}
	return all
}

func captureOf(pid int, all []found) (folder string, view *live.View, err error) {
	for _, f := range all {
		if f.view.PID == pid || slices.ContainsFunc(f.view.Processes, func(p live.Process) bool { return p.PID == pid }) {
			return f.folder, f.view, nil
		}
	}
	for _, folder := range environOf(pid, "GMTRACE_DIR") {
		view, err := live.Ask(folder)
		if err == nil {
			return folder, view, nil
		} else if !errors.Is(err, live.ErrEnded) {
			return "", nil, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return "", nil, fmt.Errorf("process %d is not captured by gmtrace", pid)
}

// environOf returns the value of a variable that a process was started with: none if it is not known or empty.
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
