"""Compiles the C++ half, cpp/, against the headers of the PyTorch that is imported, once for each version of it and each compiler."""

import contextlib
import errno
import hashlib
import os
import shlex
import shutil
import stat
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "cpp")
HEADER = os.path.join("c10", "cuda", "CUDACachingAllocator.h")
RUNTIME_HEADER = "cuda_runtime_api.h"
LIMIT = 60  # seconds that a compilation may take, or waiting for one by another process
STANDARDS = ("c++17", "c++20")  # newer versions of PyTorch may need the second


class Failed(Exception):
    """Says why there is no library."""


def library(torch, environ, folder):
    """Returns the path of the library, in a folder that only this user can write to."""
    command = Command(torch, environ)
    path = os.path.join(folder, "torch-%s-%s.so" % (torch.__version__, command.digest()))
    if not ours(path):
        with lock(path + ".lock"):
            if not ours(path):
                run_once(command, path, environ)
    return path


def run_once(command, path, environ):
    """Compiles, unless another process of this run has failed to: they would all fail, one after another."""
    note = os.path.join(environ.get("GMSTITCH_DIR", ""), os.path.basename(path) + ".failed")
    with contextlib.suppress(OSError), open(note) as f:
        raise Failed(f.read())
    try:
        command.run(path, environ)
    except Failed as e:
        with contextlib.suppress(OSError), open(note, "w") as f:
            f.write(str(e))
        raise


def folders(environ):
    """Returns where the library may be kept: in the user's cache, and for as long as the run lasts."""
    cache = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = []
    for folder in (os.path.join(cache, "gm"), environ.get("GMSTITCH_DIR", "")):
        with contextlib.suppress(OSError):
            if os.path.isabs(folder) and private(folder):
                found.append(folder)
    return found


def private(folder):
    """Makes a folder unless it is there, and says whether this user may write to it and no other."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and own(found) and os.access(folder, os.W_OK | os.X_OK)


def ours(path):
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and own(found)


def own(found):
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@contextlib.contextmanager
def lock(path):
    """Lets one process compile while the others wait; where files cannot be locked, each compiles."""
    import fcntl

    deadline = time.monotonic() + LIMIT
    with open(path, "w") as f:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        yield


class Command(object):
    """How the library is compiled."""

    def __init__(self, torch, environ):
        self.compiler = shlex.split(environ.get("CXX", "")) or ["g++"]
        program = shutil.which(self.compiler[0])
        if program is None:
            raise Failed("there is no C++ compiler %s" % self.compiler[0])
        self.program = os.path.realpath(program)
        self.version = "%s %s" % (torch.__version__, getattr(torch.version, "git_version", ""))
        abi = int(getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True))
        self.flags = ["-O2", "-shared", "-fPIC", "-w", "-D_GLIBCXX_USE_CXX11_ABI=%d" % abi, "-D__NV_NO_HOST_COMPILER_CHECK=1"]
        for folder in (torch_headers(torch), cuda_headers(torch, environ)):
            self.flags += ["-I" + folder] if folder else []
        self.flags += ["-idirafter", os.path.join(SOURCES, "cuda")]
        self.libraries = [loaded("libc10.so"), loaded("libc10_cuda.so")]

    def digest(self):
        """Returns a name that changes with all that the library depends on."""
        compiler = os.stat(self.program)
        facts = [self.version, self.program, compiler.st_size, compiler.st_mtime_ns, self.compiler, self.flags[:-1], self.libraries,
                 os.uname().machine, os.confstr("CS_GNU_LIBC_VERSION")]
        h = hashlib.sha256(repr(facts).encode())
        for folder, _, names in sorted(os.walk(SOURCES)):
            for name in sorted(names):
                with open(os.path.join(folder, name), "rb") as f:
                    h.update(f.read())
        return h.hexdigest()[:24]

    def run(self, path, environ):
        """Compiles to path, which appears whole."""
        import subprocess

        environ = dict(environ, LC_ALL="C")
        environ.pop("LD_PRELOAD", None)
        deadline = time.monotonic() + LIMIT
        part = "%s.%s" % (path, os.urandom(8).hex())
        try:
            for standard in STANDARDS:
                command = self.compiler + ["-std=" + standard] + self.flags + ["-o", part, os.path.join(SOURCES, "install.cpp")]
                done = subprocess.run(command + self.libraries, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=max(1, deadline - time.monotonic()))
                if done.returncode == 0:
                    os.chmod(part, 0o700)
                    os.rename(part, path)
                    return
                failure = done.stdout if standard == STANDARDS[0] else failure
            failure = failure.decode(errors="replace")
            why = "%s: %s" % (os.path.basename(self.compiler[0]), first_error(failure))
            raise OSError(why) if full(failure) else Failed(why)
        except subprocess.TimeoutExpired:
            raise Failed("%s took more than %d s" % (os.path.basename(self.compiler[0]), LIMIT))
        finally:
            with contextlib.suppress(OSError):
                os.unlink(part)


def torch_headers(torch):
    home = os.path.dirname(os.path.abspath(torch.__file__))
    folders = [os.path.join(home, "include")]
    if home.startswith("/usr/lib/"):
        folders.append("/usr/include")  # of a distribution's package
    for folder in folders:
        if os.path.isfile(os.path.join(folder, HEADER)):
            return "" if folder == "/usr/include" else folder
    raise Failed("PyTorch's headers are not in %s" % folders[0])


def cuda_headers(torch, environ):
    """Returns the folder of CUDA's headers, those that were installed with PyTorch first; "" leaves it to the compiler and to what
    stands in for them."""
    folders = []
    for parent in [os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))] + sys.path:
        packages = os.path.join(parent, "nvidia")
        with contextlib.suppress(OSError):
            folders += [os.path.join(packages, name, "include") for name in sorted(os.listdir(packages))]
    folders += [os.path.join(environ[name], "include") for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    folders.append("/usr/local/cuda/include")
    nvcc = shutil.which("nvcc")
    if nvcc:
        folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "include"))
    for folder in folders:
        if os.path.isfile(os.path.join(folder, RUNTIME_HEADER)):
            return folder
    return ""


def loaded(name):
    """Returns the file of a library that this process has loaded."""
    with open("/proc/self/maps") as f:
        for line in f:
            path = line.rstrip("\n").partition("/")[2]
            if os.path.basename(path).startswith(name):
                return "/" + path
    raise Failed("%s is not loaded" % name)


def full(text):
    """Says whether a compiler failed because a file system is full."""
    return any(os.strerror(number) in text for number in (errno.ENOSPC, errno.EDQUOT))


def first_error(text):
    lines = [line.strip() for line in text.splitlines() if "error" in line] or text.strip().splitlines() or ["it failed"]
    return lines[0]
