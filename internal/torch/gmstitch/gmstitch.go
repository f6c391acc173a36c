// Package gmstitch holds the Python files that put libgm.so in the place of PyTorch's CUDA allocator and of CuPy's memory pool, in programs
// that are not changed: a folder of them, put first on PYTHONPATH, is found by each Python process (package site).
//
// Environment variables:
//
//	GMSTITCH_DIR    folder of the session; without it nothing is done
//	GM_LIB          libgm.so
//	GMSTITCH_TORCH  "pluggable" skips the compiled class
//	GMSTITCH_CUPY   "1" serves CuPy's default pool, too
//
// The allocator is put in when CUDA starts; a file named [Mark] in the folder of the session says that this happened in some process.
// It is a C++ class (cpp) that is compiled against PyTorch's headers at the first use (build.py, native.py). Where that fails it is a
// pluggable allocator (install.py), and Python functions that PyTorch refuses to those are redirected (redirect.py and what it imports).
// Where neither can be put in, PyTorch's own stays. A line on standard error says why. CuPy is served from its first request on
// (cupy_pool.py, cupy_memory.py).
package gmstitch

import (
	"embed"

	"gm/internal/torch/site"
)

//go:embed python/gmstitch_hook/*.py python/gmstitch_hook/cpp
var files embed.FS

// Mark is a file in the folder of the session. What gmstitch run --preload loads makes it, too.
const Mark = "started"

// Install writes the Python files into dir, which must exist.
func Install(dir string) error {
	return site.Package{Tool: "gmstitch", Files: files, Shared: []string{"addresses.py", "say.py"}, Waits: []string{"cupy"}}.Install(dir)
}
