// Package nvml asks NVIDIA's management library how much memory of a GPU is in use, by all processes and by one. [Open] loads
// libnvidia-ml.so.1, a part of the driver.
//
// No other package imports go-nvml. Its link flags allow undefined C functions in the whole program, and a call of a function that the
// installed library lacks ends the process. So this package looks up each function before it calls it. A program that links this package
// must not be bound at its start (LD_BIND_NOW, or the linker's -z now), since the library is not loaded then.
package nvml
