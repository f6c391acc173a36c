// Package gmswap holds the Python files that move what autograd saves to the host and back, in programs that are not changed: a folder
// of them, put first on PYTHONPATH, is found by each Python process (package site).
//
// Environment variables:
//
//	GMSWAP_DIR       folder of the session; without it nothing is done
//	GM_LIB           libgm.so
//	GMSWAP_DEVICE    bytes that may be in use on the device; all of it by default
//	GMSWAP_HOST      bytes of host memory, for all processes of a host that torchrun started together
//	GMSWAP_POLICY    the policy that makes schedules
//	GMSWAP_LINK      file of the figures of copies that gmswap bandwidth wrote; those of an H200 by default
//	GMSWAP_DRY       1: a schedule is made and reported, and nothing is moved after that
//	GMSWAP_RECORD    file for the graph of the recorded step; %p in its name is the pid
//	GMSWAP_ALL       1: all that a step does is recorded, and nothing is moved
//	GMSWAP_OOM       1: requests that find no room fail, and have no memory of the host
//	GMSWAP_EARLY     1: parameters are updated as soon as their gradients are complete
//	GMSWAP_SCHEDULE  file for the schedule, likewise
//	GMSWAP_STATS     file for an account at the end, likewise
//	GMSWAP_PROGRESS  1: a line for each step
//	GMSWAP_ORDER     1: compiled programs get the planner's order of operators where that takes less memory
//
// A file named [Mark] in the folder of the session says that some process has begun to run a model.
//
// The Python files:
//
//	start.py, hooks.py, whole.py            when moving begins, and the hooks on models
//	runtime.py                              the steps of a program: recorded, then by a schedule
//	entry.py, memory.py, library.py         what autograd saved, PyTorch's storages, libgm.so
//	graph.py, measure.py                    a recorded step, and its times
//	operators.py, rerun.py, chain.py        the operators of a step, those that can be rerun, and what is rerun for a tensor
//	remake.py, small.py                     how a tensor is recomputed, and of which small ones, which stay
//	follow.py, reactive.py, planner.py      a step by a schedule, one without, and the request for a schedule
//	family.py, model.py, extent.py          steps of all sizes: their schedules, what each does, and its sizes
//	between.py                              what a third step is that does the same as two others with other sizes
//	demand.py, relief.py, foresight.py      a step within a limit without a schedule, how room is made, and how much will be needed
//	second.py                               what a backward pass saves for another one through it
//	recorder.py, ledger.py, complete.py     a step of which all is recorded, what is noted of it, and its graph
//	places.py, effects.py                   which module an operator belongs to, and what it does beside tensors
//	inductor.py, scheduler.py               the order of operators in compiled programs
//	partition.py, joint.py, again.py        what compiled programs save for their backward pass
//	stepping.py, steps.py, states.py        steps of optimizers chunk by chunk, and their states, which wait on the host
//	loading.py, apart.py                    states that are loaded, and whether other optimizers than torch.optim's update each parameter by itself
//	gradients.py, updates.py                early updates of parameters, and what a program does that forbids them
//	samples.py, report.py, settings.py      checks of recomputed contents, messages and accounts, settings
package gmswap

import (
	"embed"

	"gm/internal/torch/site"
)

//go:embed python/gmswap_hook/*.py
var files embed.FS

// Mark is a file in the folder of the session.
const Mark = "moving"

// Install writes the Python files into dir, which must exist.
func Install(dir string) error {
	return site.Package{Tool: "gmswap", Files: files, Shared: []string{"addresses.py", "say.py"}}.Install(dir)
}
