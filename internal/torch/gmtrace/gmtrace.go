// Package gmtrace holds the Python files that record PyTorch's allocation history from within a program, with no change to
// it: a folder of them, put first on PYTHONPATH, is found by each Python process (package site).
//
// Environment variables say what to record:
//
//	GMTRACE_DIR       folder that takes the files; without it nothing is done
//	GMTRACE_STACKS    "python" records the stack of each allocation
//	GMTRACE_MARKS     "module:function" or "module:Class.method", whose return ends a step; the default is that of the
//	                  step of any optimizer
//	GMTRACE_STEPS     "3:6" records steps 3, 4 and 5 only; the first step is number 0
//	GMTRACE_ONLY_OOM  "1" keeps nothing but the history before the last failed allocation
//	GMTRACE_HISTORY   entries of PyTorch's ring for each device, 40000 by default
//
// A process that initialises CUDA writes:
//
//	torch.PID.json          {"torch", "python": versions, "path": how dumps are made, "c++" or "python",
//	                        "history": "on" or why not, "stacks", "ring"}
//	history.PID.N.pickle    snapshots for package torch, N from 0; their histories overlap
//	marks.PID               a line for each mark: nanoseconds since the Unix epoch, and "step"
//
// While a file named live is in the folder, the history is drained each second, and otherwise each 10 s. Snapshots
// are renamed into place when they are whole.
package gmtrace

import (
	"embed"

	"gm/internal/torch/site"
)

//go:embed python/gmtrace_hook/*.py
var files embed.FS

// Install writes the Python files into dir, which must exist.
func Install(dir string) error { return site.Package{Tool: "gmtrace", Files: files}.Install(dir) }
