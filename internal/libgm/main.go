// Libgm is the library that lives in a user's process: gm's allocators behind the C interface of gm.h, for PyTorch's
// CUDAPluggableAllocator and for any other program. It is built with -buildmode=c-shared.
//
// The environment, which is read when the first device is used:
//
//	GM_ALLOC   the allocator: stitch (the default), expandable or torch, which take settings in the syntax of PYTORCH_CUDA_ALLOC_CONF
//	           after a colon, or gmlake
//	GM_PLAN    a plan of gmplan for one iteration, which stitch is to follow
//	GM_AUTO    1: stitch looks for iterations, plans them, and follows that plan
//	GM_PLANNER what makes plans, in another process: the socket of a run of gmstitch or gmswap, or the program gmstitch. By default
//	           gmstitch in the folder of libgm.so, if it is there. Without one no plan is followed, and a line says so
//	GM_LIMIT   bytes that may be taken from each device
//	GM_SERVER  the socket of gmswap serve, which may put the memory of this process to sleep; gmswap run and gmstitch run set it, and
//	           preload the gate that this needs (package gate)
//	GM_NAME    the name of the job there
//	GM_LINKS   GPUs such as 1,2 by whose links to the host memory sleeps and wakes, too
//	GM_LOG     a file for what goes to standard error otherwise
//	GM_STATS   a file for the account at the end of the process: a summary in JSON, or a trace where the name ends in .parquet;
//	           %p in it stands for the process id
//	GM_EVENTS  how many requests a trace holds, the last ones: 4194304 if unset
//	GM_DIR     the folder of the page that shows the account while the process runs, /dev/shm/gm.UID if unset
//
// # How a request runs
//
// A small request is served in C (small.c), and so is a large one for which a block of its size was freed (warm.c). For others C takes the
// lock of the device and enters Go; so no goroutine ever waits for another thread, and a thread that waits spins, then sleeps in the kernel.
// A free does not enter Go: a small block is free at once, a large one stays in C, or its address goes into a queue; the next request in Go
// takes both. In a forked child, where there is no Go, C answers by itself.
//
// # Sleep
//
// With a memory server (served.go) physical memory comes by way of internal/swap/park, which moves it to the host and back while the gate in
// front of the driver (gate/gate.c) holds the program's launches and copies. The program waits there, or for the lock of the device; what waits
// asks for the memory.
//
// # Memory in other processes
//
// gm_share names the pieces of a request, gm_open_shared maps them in another process. That gets them as file descriptors from a thread of
// the owner, at a socket without a file (share_server.go), which answers processes of the same user that know the secret of a handle. It does
// not take them with pidfd_getfd: processes may not trace others that they did not start (Yama), and those in containers none at all.
// Memory from cuMemAlloc, which serves small requests and private pools, is shared by the driver's own IPC handles.
package main

// #cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -fvisibility=hidden -fexceptions -fasynchronous-unwind-tables
// #cgo LDFLAGS: -ldl -pthread
import "C"

func main() {}
