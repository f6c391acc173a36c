"""Measures each algorithm of cuDNN for the convolutions of networks: its workspace and its time, in each of the three passes.

Usage: cudnn.py OUT [--seconds N] [--list]

It calls cuDNN's functions that find algorithms (cudnnFindConvolutionForwardAlgorithmEx and the two of the backward pass) through ctypes, in
the library that PyTorch has loaded, several times for each convolution; of the times of an algorithm the least counts. First come all
convolutions of networks.py in single precision without tensor cores (fp32), then all with TensorFloat-32 (tf32). OUT gets a row for each
algorithm that cuDNN could run, as soon as it is measured. Nothing is begun after --seconds: what is left out is said. --list prints
the convolutions, and needs no GPU.
"""

import argparse
import csv
import ctypes
import os
import sys
import time

import networks

# cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h of cuDNN 9
FLOAT, NCHW, CROSS_CORRELATION = 0, 0, 1
MATH = {"fp32": 3, "tf32": 0}  # CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH
PASSES = {
    "forward": ("Forward", "implicit_gemm implicit_precomp_gemm gemm direct fft fft_tiling winograd winograd_nonfused".split()),
    "backward_data": ("BackwardData", "algo_0 algo_1 fft fft_tiling winograd winograd_nonfused".split()),
    "backward_filter": ("BackwardFilter", "algo_0 algo_1 fft algo_3 winograd winograd_nonfused fft_tiling".split()),
}
RESULTS = 32            # more than there are algorithms and kinds of arithmetic
WORKSPACE = 24 << 30    # bytes that an algorithm may have
MEASURED = 0.4          # seconds after which no convolution is measured again, once it was twice
REPEATS = 5

COLUMNS = ("network", "layer", "batch", *networks.Convolution._fields[1:], "dtype", "pass", "algorithm", "workspace_bytes", "ms", "math", "deterministic")


class Perf(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t, and those of the backward pass."""

    _fields_ = [("algo", ctypes.c_int), ("status", ctypes.c_int), ("time", ctypes.c_float), ("memory", ctypes.c_size_t),
                ("determinism", ctypes.c_int), ("math", ctypes.c_int), ("reserved", ctypes.c_int * 3)]


class CudnnError(Exception):
    pass


class Library:
    """cuDNN, whose functions are in one library or in several."""

    def __init__(self):
        self.loaded, missing = [], []
        folders = [""]
        try:
            import nvidia.cudnn
            folders += [os.path.join(p, "lib", "") for p in nvidia.cudnn.__path__]
        except ImportError:
            pass
        for name in ("libcudnn.so.9", "libcudnn_cnn.so.9", "libcudnn_ops.so.9", "libcudnn_graph.so.9"):
            for path in folders:
                try:
                    self.loaded.append(ctypes.CDLL(path + name, mode=ctypes.RTLD_GLOBAL))
                    break
                except OSError as e:
                    missing.append(str(e))
        if not self.loaded:
            sys.exit("no cuDNN: " + "; ".join(missing))
        self.function("cudnnGetVersion").restype = ctypes.c_size_t

    def function(self, name):
        for library in self.loaded:
            try:
                return getattr(library, name)
            except AttributeError:
                continue
        raise CudnnError(f"{name} is in none of cuDNN's libraries")

    def call(self, name, *args):
        status = self.function(name)(*args)
        if status:
            text = self.function("cudnnGetErrorString")
            text.restype = ctypes.c_char_p
            raise CudnnError(f"{name}: {text(status).decode()} ({status})")

    def make(self, what):
        made = ctypes.c_void_p()
        self.call("cudnnCreate" + what, ctypes.byref(made))
        return made


class Convolutions:
    """Descriptors and memory for one convolution after the other."""

    def __init__(self, torch, cudnn, shapes):
        self.cudnn = cudnn
        x, w, y = (max(sizes) for sizes in zip(*(elements(batch, c) for batch, c in shapes)))
        self.data = {name: torch.empty(n, device="cuda").normal_() for name, n in (("x", x), ("w", w), ("y", y))}
        self.out = torch.empty(max(x, w, y), device="cuda")
        self.workspace = torch.empty(WORKSPACE // 4, device="cuda")
        self.handle = cudnn.make("")
        self.x, self.y = cudnn.make("TensorDescriptor"), cudnn.make("TensorDescriptor")
        self.w, self.convolution = cudnn.make("FilterDescriptor"), cudnn.make("ConvolutionDescriptor")

    def describe(self, batch, c, dtype):
        self.cudnn.call("cudnnSetTensor4dDescriptor", self.x, NCHW, FLOAT, batch, c.channels, c.height, c.width)
        self.cudnn.call("cudnnSetFilter4dDescriptor", self.w, FLOAT, NCHW, c.filters, c.channels // c.groups, c.kernel_height, c.kernel_width)
        self.cudnn.call("cudnnSetConvolution2dDescriptor", self.convolution, c.pad_height, c.pad_width, c.stride, c.stride, 1, 1, CROSS_CORRELATION, FLOAT)
        self.cudnn.call("cudnnSetConvolutionGroupCount", self.convolution, c.groups)
        self.cudnn.call("cudnnSetConvolutionMathType", self.convolution, MATH[dtype])
        self.cudnn.call("cudnnSetTensor4dDescriptor", self.y, NCHW, FLOAT, *output(batch, c))

    def find(self, which):
        """Returns what cuDNN finds for a pass: a list of Perf."""
        def data(name):
            return ctypes.c_void_p(self.data[name].data_ptr())

        out, count, results = ctypes.c_void_p(self.out.data_ptr()), ctypes.c_int(), (Perf * RESULTS)()
        arguments = {
            "forward": (self.x, data("x"), self.w, data("w"), self.convolution, self.y, out),
            "backward_data": (self.w, data("w"), self.y, data("y"), self.convolution, self.x, out),
            "backward_filter": (self.x, data("x"), self.y, data("y"), self.convolution, self.w, out),
        }[which]
        self.cudnn.call(f"cudnnFindConvolution{PASSES[which][0]}AlgorithmEx", self.handle, *arguments, RESULTS, ctypes.byref(count), results,
                        ctypes.c_void_p(self.workspace.data_ptr()), ctypes.c_size_t(WORKSPACE))
        return results[:count.value]

    def measure(self, which):
        """Returns the best of several measurements of each algorithm, and how many cuDNN refuses."""
        best, begun = {}, time.monotonic()
        for i in range(REPEATS):
            if i > 1 and time.monotonic() - begun > MEASURED:
                break
            found = self.find(which)
            for p in (p for p in found if p.status == 0):
                key = p.algo, p.math
                if key not in best or p.time < best[key].time:
                    best[key] = p
        return sorted(best.values(), key=lambda p: p.time), len(found) - len(best)


def output(batch, c):
    return (batch, c.filters, (c.height + 2 * c.pad_height - c.kernel_height) // c.stride + 1,
            (c.width + 2 * c.pad_width - c.kernel_width) // c.stride + 1)


def elements(batch, c):
    n, k, p, q = output(batch, c)
    return batch * c.channels * c.height * c.width, k * c.channels // c.groups * c.kernel_height * c.kernel_width, n * k * p * q


def tasks():
    """Yields (dtype, network, batch, convolution, pass). Nothing asks for the gradient of an image."""
    for dtype in MATH:
        for network, batch, c in networks.distinct(networks.NETWORKS):
            for which in PASSES:
                if which != "backward_data" or c.channels != 3:
                    yield dtype, network, batch, c, which


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("out", nargs="?", default="cudnn.csv", type=os.path.abspath)
    p.add_argument("--seconds", type=float, default=90)
    p.add_argument("--list", action="store_true")
    p.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)  # set where it begins again behind a task that broke the context
    p.add_argument("--begun", type=float, default=time.monotonic(), help=argparse.SUPPRESS)
    return p.parse_args()


def begin_again(o, following, why):
    """An error of a kernel breaks the process's context: a new process goes on behind it."""
    print(f"{why}; going on in a new process", file=sys.stderr, flush=True)
    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), o.out, "--seconds", str(o.seconds), "--first", str(following), "--begun", str(o.begun)])


def measure_all(o, write):
    import torch
    cudnn = Library()
    todo = list(tasks())
    convolutions = Convolutions(torch, cudnn, [(batch, c) for _, _, batch, c, _ in todo])
    if not o.first:
        print(f"# {torch.cuda.get_device_name()}, cuDNN {cudnn.function('cudnnGetVersion')()}, PyTorch {torch.__version__}", file=write.file)
        write.row(COLUMNS)
    for i, (dtype, network, batch, c, which) in enumerate(todo):
        if i < o.first:
            continue
        if time.monotonic() - o.begun > o.seconds:
            print(f"left out: {len(todo) - i} of {len(todo)} measurements, from {network} {batch} {c.layer} {which} {dtype} on", file=sys.stderr)
            break
        at = f"{network} {batch} {c.layer} {which} {dtype}"
        try:
            convolutions.describe(batch, c, dtype)
            found, refused = convolutions.measure(which)
            torch.cuda.synchronize()
        except CudnnError as e:
            print(f"{at}: {e}", file=sys.stderr)
            try:
                torch.cuda.synchronize()
            except RuntimeError as broken:
                begin_again(o, i + 1, f"{at}: {broken}")
            continue
        except RuntimeError as broken:
            begin_again(o, i + 1, f"{at}: {broken}")
        for p in found:
            names = PASSES[which][1]
            name = names[p.algo] if 0 <= p.algo < len(names) else str(p.algo)
            write.row((network, c.layer, batch, *c[1:], dtype, which, name, p.memory, f"{p.time:.4f}", p.math, p.determinism))
        print(f"{at}: {len(found)} algorithms, {refused} refused", file=sys.stderr)


class Writer:
    def __init__(self, path, mode):
        self.file = open(path, mode, newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")

    def row(self, cells):
        self.writer.writerow(cells)
        self.file.flush()


def summary(path):
    """Prints, for each network and arithmetic, the sum over the shapes of the fastest algorithms, and of the fastest without a workspace."""
    with open(path) as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    cases = {}
    for r in rows:
        case = cases.setdefault((r["dtype"], r["network"], r["batch"]), {})
        case.setdefault((r["layer"], r["pass"]), []).append((float(r["ms"]), int(r["workspace_bytes"])))
    print("dtype network batch passes fastest_ms without_workspace_ms none_without largest_workspace_MiB")
    for (dtype, network, batch), passes in cases.items():
        fastest = [min(options) for options in passes.values()]
        bare = [min((ms for ms, size in options if size == 0), default=None) for options in passes.values()]
        print(dtype, network, batch, len(passes), f"{sum(ms for ms, _ in fastest):.2f}", f"{sum(ms for ms in bare if ms is not None):.2f}",
              bare.count(None), max(size for _, size in fastest) >> 20)


def main():
    o = options()
    if o.list:
        for task in tasks():
            print(*task[:3], *task[3], task[4])
        return
    write = Writer(o.out, "a" if o.first else "w")
    measure_all(o, write)
    write.file.close()
    summary(o.out)


if __name__ == "__main__":
    main()
