package library

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"gm/internal/cli/command"
	"gm/internal/swap/server/wire"
)

// Served is the flags of a run whose job a memory server may put to sleep.
type Served struct {
	Server bool   `help:"Let gmswap serve put the program's memory to sleep and wake it; GM_SERVER names another socket than the default one."`
	Links  string `placeholder:"LIST" help:"GPUs such as 1 or 1,2, as the program numbers them, by whose links to the host its memory sleeps and wakes, too. Each takes the half gigabyte of a CUDA context. With --server."`
	Name   string `placeholder:"NAME" help:"What the memory server calls the program, for gmswap ctl and quotas. With --server."`
}

var links = regexp.MustCompile(`^[0-9]+(,[0-9]+)*$`)

// Install puts the gate into the folder of a run, and has the run's processes load it and connect to the server. They go on without one,
// which may also come later; it returns a warning where there is none yet.
func (s *Served) Install(folder string, e *command.Environ) (warning string, err error) {
	if !s.Server {
		return "", nil
	}
	if s.Links != "" && !links.MatchString(s.Links) {
		return "", fmt.Errorf("--links %s: numbers of GPUs such as 1 or 1,2", s.Links)
	}
	data, err := Read(Gate)
	if err != nil {
		return "", err
	}
	gate := filepath.Join(folder, Gate)
	if err := os.WriteFile(gate, data, 0o700); err != nil {
		return "", err
	}
	path, err := filepath.Abs(wire.Path())
	if err != nil {
		return "", err
	}
	e.Prepend("LD_PRELOAD", gate, ":", "")
	e.Set("GM_SERVER", path)
	if s.Name != "" {
		e.Set("GM_NAME", s.Name)
	}
	if s.Links != "" {
		e.Set("GM_LINKS", s.Links)
	}
	conn, err := wire.Dial(path)
	if err != nil {
		return fmt.Sprintf("%v; the program runs, and nothing puts it to sleep until gmswap serve does", err), nil
	}
	return "", conn.Close()
}
