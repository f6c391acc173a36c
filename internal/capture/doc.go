// Package capture records what the processes of a command obtain of GPU memory, and what their frameworks make of it.
//
// A [Session] is a folder and an environment. The environment makes every program that is started with it load a small library in C
// (internal/capture/preload) and every Python that imports torch a hook (internal/torch/gmtrace). The library opens a ring in the folder
// when the process first touches CUDA, the hook leaves dumps of PyTorch's allocation history there. While the command runs, the
// session empties the rings and takes the dumps in, so that neither grows; what the rings told waits in journals, from which it can be had also when
// this process was killed ([Recover]). At the end each process's rows are merged into one trace.
//
// Files in the folder and what is in a ring are what programs say, and are not believed. What goes wrong with one process is told, and leaves the
// others as they are.
package capture
