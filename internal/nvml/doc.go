// Package nvml asks NVIDIA's management library what memory of a GPU is in use, by anyone and by one process. It loads
// libnvidia-ml.so.1, a part of the driver, when [Open] is called and not before.
//
// No other package imports go-nvml: its link flags let undefined C functions through the linker, for the whole of a program that
// links it, and a call of a function that the library turns out to lack ends the process. So whatever is called here was looked
// up first. A program that links this package must not be bound at its start (LD_BIND_NOW, or the linker's -z now): the library's
// functions are not there yet.
package nvml
