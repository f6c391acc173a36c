// Package capture records a command's processes while they run: the GPU memory that they obtain from the driver, and the tensors that
// PyTorch places in it.
//
// A [Session] is a folder and an environment. The environment makes every program that is started with it load a small library in C
// (internal/capture/preload), and every Python process that imports torch load a hook (internal/torch/gmtrace). When a process first
// touches CUDA, the library opens a ring in the folder and writes a record of each driver call into it; the hook writes dumps of
// PyTorch's allocation history. While the command runs, the session empties the rings and reads the dumps, so that neither grows. What it
// read from a ring it keeps in a journal, which [Recover] can read even if gmtrace was killed. At the end the rows of each process are
// merged into one trace.
//
// Programs write the files and the rings, so nothing in them is trusted. A failure in the recording of one process is reported and does not
// affect the others.
//
// # Files
//
//	session.go, command.go, process.go   the folder and its polling; the command that is run; one recorded process
//	life.go, daytime.go, cards.go        whether a process still runs, jumps of the time of day, NVML's samples of the GPUs
//	journal.go, replay.go                records kept in a file, and read back as rows
//	interpreter.go, interpret_*.go       the meaning of records: which memory lives, and its rows; one file for each group of driver calls
//	libraries.go, symbols.go             the library that made a call, and the functions on its stack
//	history.go, steps.go                 PyTorch's dumps and step marks, and the range of steps to record
//	rows.go, merge.go                    rows of the driver's level, merged with those of PyTorch in order of time
//	finish.go, outputs.go, rescue.go     traces written at the end, their names, and where they go when the disk is full
//	recover.go                           traces of a session whose gmtrace was killed
//	live.go                              what is known so far, for gmtrace top
//	preload.go                           the C library, embedded
//
// # Packages
//
//	preload   the C library that records the driver's calls: hooks (memory.c, pool.c, physical.c, context.c, code.c, runtime.c), how calls
//	          reach them (resolve.c, audit.c), the records (tell.c, caller.c, measure.c) and the ring (ring.c; ring.h is its format)
//	ring      reads a ring from outside of its process
//	live      what a running capture knows, over a socket: Serve, Ask
//	top       the terminal page of gmtrace top
package capture
