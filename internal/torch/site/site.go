// Package site brings the Python packages of gm's tools into the Python processes of a program, with no change to it: a folder, put
// first on PYTHONPATH, is found by each of them as its sitecustomize, which then runs the one that comes after it.
//
// For a tool named gmtool the folder holds a package gmtool_hook. Its function imported(name, module) is called when the program has
// imported torch, another module that the tool waits for, or the one that GMTOOL_MARKS names before a colon; it returns the names of
// modules to wait for next, or None.
// Nothing is done while GMTOOL_DIR is no folder.
package site

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed sitecustomize.py
var sitecustomize string

//go:embed python/shared/*.py
var shared embed.FS

// Package is what a tool brings into Python.
type Package struct {
	Tool   string
	Files  fs.FS    // all below python is copied
	Shared []string // modules of python/shared that it imports as its own
	Waits  []string // modules that it waits for beside torch
}

// Install writes the package and the sitecustomize into dir, which must exist.
func (p Package) Install(dir string) error {
	text := strings.Replace(sitecustomize, `TOOL = "gm"`, fmt.Sprintf("TOOL = %q", p.Tool), 1)
	for _, name := range p.Waits {
		text = strings.Replace(text, `WAITS = {"torch"`, fmt.Sprintf(`WAITS = {"torch", %q`, name), 1)
	}
	err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(text), 0o644)
	if err == nil {
		err = copyTree(dir, p.Files)
	}
	for _, name := range p.Shared {
		if err == nil {
			err = copyShared(filepath.Join(dir, p.Tool+"_hook"), name)
		}
	}
	if err != nil {
		return fmt.Errorf("install Python hook: %w", err)
	}
	return nil
}

// copyShared copies a module that several tools share into the package of one.
func copyShared(dir, name string) error {
	text, err := shared.ReadFile("python/shared/" + name)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), text, 0o644)
}

// copyTree copies what is below the folder python.
func copyTree(dir string, files fs.FS) error {
	python, err := fs.Sub(files, "python")
	if err != nil {
		return err
	}
	return fs.WalkDir(python, ".", func(name string, entry fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case entry.IsDir():
			if err := os.Mkdir(to, 0o755); !errors.Is(err, fs.ErrExist) {
				return err
			}
			return nil
		}
		data, err := fs.ReadFile(python, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
