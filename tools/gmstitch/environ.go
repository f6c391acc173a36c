package main

import (
	"os"
	"path/filepath"
	"strconv"

	"gm/internal/cli/command"
	"gm/internal/libgm/library"
)

// folderVariable names the folder of a run in the environment of its processes.
const folderVariable = "GMSTITCH_DIR"

// environ returns the environment for the command, made of a given one.
func (cmd *runCmd) environ(base []string, folder string) command.Environ {
	e := command.Environ(base)
	outer := e.Get(folderVariable) // of a run that this one is within
	e.Prepend("PYTHONPATH", filepath.Join(folder, "python"), string(os.PathListSeparator), outer)
	e.Set(folderVariable, folder)
	shared := cmd.Library
	if shared == "" {
		shared = filepath.Join(folder, library.Allocator)
	}
	e.Set("GM_LIB", shared)
	if cmd.Preload {
		e.Prepend("LD_PRELOAD", filepath.Join(folder, library.Preload), ":", outer)
	}
	for name, value := range map[string]string{"GM_PLAN": cmd.Plan, "GM_STATS": cmd.Stats, "GM_LOG": cmd.Log} {
		if value != "" {
			e.Set(name, value)
		}
	}
	if cmd.Auto {
		e.Set("GM_AUTO", "1")
	}
	if cmd.CuPy {
		e.Set("GMSTITCH_CUPY", "1")
	}
	if cmd.Limit > 0 {
		e.Set("GM_LIMIT", strconv.FormatInt(int64(cmd.Limit), 10))
	}
	return e
}
