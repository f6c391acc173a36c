package top

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"gm/internal/nvml"
	"gm/internal/report"
	"gm/internal/units"
)

// Machine is what NVML knows of the GPUs of this machine, and of all processes on them.
type Machine struct {
	GPUs []GPU `json:"gpus"`
}

// GPU is a GPU and the processes that use it, those that use the most memory first.
type GPU struct {
	UUID      string       `json:"uuid"`
	Name      string       `json:"name"`
	Total     int64        `json:"total_bytes"`
	Used      int64        `json:"used_bytes"`
	Busy      *int         `json:"busy_percent,omitempty"` // nil if it is not known
	Processes []GPUProcess `json:"processes"`
	Problem   string       `json:"problem,omitempty"` // why something is not known
}

// GPUProcess is a process on a GPU.
type GPUProcess struct {
	PID     int      `json:"pid"`
	Used    int64    `json:"used_bytes"` // -1 if NVML does not say
	Command string   `json:"command"`    // "" if this user cannot see it
	Tools   []string `json:"tools"`      // of gm that serve it
}

// readMachine asks NVML about devices.
func readMachine(devices []*nvml.Device) *Machine {
	m := &Machine{GPUs: []GPU{}}
	for _, d := range devices {
		g := GPU{UUID: d.UUID, Name: d.Name, Total: d.Total, Processes: []GPUProcess{}}
		used, err := d.Used()
		g.Used = used
		if busy, known := d.Busy(); known {
			g.Busy = &busy
		}
		processes, listed := d.Processes()
		if err := errors.Join(err, listed); err != nil {
			g.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		for _, p := range processes {
			g.Processes = append(g.Processes, GPUProcess{p.PID, p.Used, commandOf(p.PID), toolsOf(p.PID)})
		}
		m.GPUs = append(m.GPUs, g)
	}
	return m
}

// commandOf returns the command line of a process, "" if it is not known.
func commandOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
}

// toolsOf returns the tools of gm that a process was started under.
func toolsOf(pid int) []string {
	tools := []string{}
	for _, tool := range []string{"gmtrace", "gmstitch", "gmswap"} {
		if len(environOf(pid, strings.ToUpper(tool)+"_DIR")) > 0 {
			tools = append(tools, tool)
		}
	}
	return tools
}

// lines returns the page of a machine.
func (m *Machine) lines(width, height int, keys string) []pageLine {
	l := &layout{width: width}
	t := report.Table{Titles: []string{"GPU", "used", "of", "share", "busy"}}
	var names []string
	for i := range m.GPUs {
		g := &m.GPUs[i]
		busy := ""
		if g.Busy != nil {
			busy = strconv.Itoa(*g.Busy) + "%"
		}
		t.Add(strconv.Itoa(i), units.Bytes(g.Used).String(), units.Bytes(g.Total).String(), share(g.Used, g.Total), busy)
		names = append(names, cmp.Or(strings.Trim(g.Name+", "+g.Problem, ", "), g.UUID))
	}
	l.addNamed(&t, "name", names)
	m.addProcesses(l)
	l.lines = l.lines[1:] // the empty line above the first table
	if keys != "" {
		l.cut(height - 1)
		for len(l.lines) < height-1 {
			l.blank()
		}
		l.lines = append(l.lines, pageLine{keys, true})
	}
	l.cut(height)
	return cutLines(l.lines, width)
}

// addProcesses adds the processes of all GPUs.
func (m *Machine) addProcesses(l *layout) {
	t := report.Table{Titles: []string{"GPU", "pid", "used", "share", "gm"}}
	var names []string
	for i := range m.GPUs {
		g := &m.GPUs[i]
		for _, p := range g.Processes {
			used, part := "unknown", ""
			if p.Used >= 0 {
				used, part = units.Bytes(p.Used).String(), share(p.Used, g.Total)
			}
			t.Add(strconv.Itoa(i), strconv.Itoa(p.PID), used, part, strings.Join(p.Tools, " "))
			names = append(names, cmp.Or(withoutFolder(p.Command), "(not to be seen from here)"))
		}
	}
	if len(names) == 0 {
		l.blank()
		l.add("no process uses a GPU")
		return
	}
	l.addNamed(&t, "command", names)
}

func share(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
