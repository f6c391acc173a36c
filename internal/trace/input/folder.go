package input

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// refuseFolder returns an error if the name is that of a folder, which names a trace in it.
func refuseFolder(name string) error {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return nil // what is wrong with a file is found when it is opened
	}
	found := ""
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".parquet" {
			found = path
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", name, err)
	}
	if found == "" {
		return fmt.Errorf("%s is a folder: name a file", name)
	}
	return fmt.Errorf("%s is a folder: name a trace in it, such as %s", name, found)
}
