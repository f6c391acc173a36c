package command

import (
	"bytes"
	"os"
	"path/filepath"
)

// sweep removes the folders of this user whose processes have ended.
func sweep(parent, prefix string, keep func(folder string) bool) {
	left, _ := filepath.Glob(filepath.Join(parent, prefix+"*", lockName))
	for _, name := range left {
		folder := filepath.Dir(name)
		f, err := OpenFolder(folder)
		if err != nil {
			continue
		}
		if f.lock != nil && !inUse(folder) && (keep == nil || !keep(folder)) {
			os.RemoveAll(folder)
		}
		f.Release()
	}
}

// inUse reports whether a running program has a folder in its environment, such as one that outlived the tool that started it.
func inUse(folder string) bool {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environs {
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(folder)) {
			return true
		}
	}
	return false
}
