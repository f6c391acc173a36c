// Package gmstitch holds the Python files that put libgm.so in the place of PyTorch's CUDA allocator, in programs that are not changed: a
// folder of them, put first on PYTHONPATH, is found by each Python process (package site).
//
// Environment variables:
//
//	GMSTITCH_DIR  folder of the session; without it nothing is done
//	GM_LIB        libgm.so
//
// The allocator is put in when CUDA starts; a file named [Mark] in the folder of the session says that this happened in some process.
// Where it cannot be put in, PyTorch's own stays and a line on standard error says why.
package gmstitch

import (
	"embed"

	"gm/internal/torch/site"
)

//go:embed python/gmstitch_hook/*.py
var files embed.FS

// Mark is a file in the folder of the session. What gmstitch run --preload loads makes it, too.
const Mark = "started"

// Install writes the Python files into dir, which must exist.
func Install(dir string) error { return site.Install(dir, "gmstitch", files, "addresses.py", "say.py") }
