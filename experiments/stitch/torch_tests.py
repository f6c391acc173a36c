"""Runs PyTorch's own tests of CUDA, such as its test/test_cuda.py, with PyTorch's allocator and with gmstitch, and compares test by test.

Usage: torch_tests.py [--gmstitch PROGRAM] [--only TEXT] [--chunk N] [--limit SECONDS] [--json FILE] [--apart] TEST_FILE

A line for each test whose result differs: name | PyTorch's allocator | gmstitch | why that may be, from torch_tests.txt. The exit status is 1
where a test differs that is not listed there. A test that ends the process, or takes longer than the limit, counts as a result, too.
--apart runs both at a time, each on a GPU of its own; tests of several GPUs are then left out.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import subprocess
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "torch_tests: "


def load(path):
    """Returns the tests of a file, by name."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    tests, rest = {}, [unittest.TestLoader().loadTestsFromModule(module)]
    while rest:
        one = rest.pop()
        if isinstance(one, unittest.TestSuite):
            rest += one
        else:
            tests[one.id().partition(".")[2]] = one
    return dict(sorted(tests.items()))


class Result(unittest.TestResult):
    """Prints what becomes of each test at once: a later one may end the process."""

    def __init__(self):
        super().__init__()
        self.word = None

    def startTest(self, test):
        super().startTest(test)
        self.word, self.text = "ok", ""
        print(MARK + json.dumps(["begin", test.id().partition(".")[2]]), flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        print(MARK + json.dumps(["end", self.word, self.text]), flush=True)

    def note(self, word, err=None):
        self.word = word
        if err:
            self.text = "%s: %s" % (err[0].__name__, (str(err[1]).strip().splitlines() or [""])[0][:300])

    def addFailure(self, test, err):
        self.note("failed", err)

    def addError(self, test, err):
        self.note("failed", err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.note("failed", err)

    def addSkip(self, test, reason):
        self.note("skipped")

    def addExpectedFailure(self, test, err):
        self.note("ok")


def child(path, names):
    tests = load(path)
    if not names:
        print(MARK + json.dumps(list(tests)), flush=True)
        return
    result = Result()
    for name in names:
        tests[name].run(result)


def lines(command, limit, **more):
    """Runs a command, with more variables of the environment, yields what it says of tests, and ends it when it says nothing for too long. Last comes its exit status."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, **more})
    timer, output = None, []
    try:
        timer = threading.Timer(limit, process.kill)
        timer.start()
        for line in process.stdout:
            if not line.startswith(MARK):
                output.append(line)
                continue
            timer.cancel()
            timer = threading.Timer(limit, process.kill)
            timer.start()
            yield json.loads(line[len(MARK):])
    finally:
        timer.cancel()
        status = process.wait()
    yield ["exit", status, "".join(output[-20:])]


def results(prefix, path, names, chunk, limit, **more):
    """Returns {name: [word, text]} of all tests."""
    found, rest = {}, list(names)
    while rest:
        now, begun = rest[:chunk], None
        for said in lines(prefix + [sys.executable, os.path.abspath(__file__), "--child", path] + now, limit, **more):
            if said[0] == "begin":
                begun = said[1]
            elif said[0] == "end":
                found[begun], begun = said[1:], None
            else:
                lost = begun or next((n for n in now if n not in found), None)
                if lost:
                    word = "timeout" if said[1] == -9 else "ended the process (%d)" % said[1]
                    found[lost] = [word, said[2].strip().splitlines()[-1][:300] if said[2].strip() else ""]
        rest = [n for n in rest if n not in found]
        print("%d of %d" % (len(found), len(names)), file=sys.stderr, flush=True)
    return found


def reasons():
    """Returns why tests may differ, by the beginnings of their names."""
    found = {}
    with open(os.path.join(HERE, "torch_tests.txt")) as f:
        for line in f:
            name, _, why = line.partition(" ")
            if line.strip() and not line.startswith("#"):
                found[name] = why.strip()
    return found


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--gmstitch", default="gmstitch")
    parser.add_argument("--only", default="")
    parser.add_argument("--chunk", type=int, default=40)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--json")
    parser.add_argument("--apart", action="store_true")
    args = parser.parse_args()
    *listed, end = lines([sys.executable, os.path.abspath(__file__), "--child", args.file], 300)
    if end[1] or not listed:
        sys.exit("the tests cannot be listed: %s" % end[2])
    names = [n for n in listed[0] if args.only in n]
    common = args.file, names, args.chunk, args.limit
    under = [args.gmstitch, "run", "--"]
    if args.apart:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = pool.submit(results, [], *common, CUDA_VISIBLE_DEVICES="0"), pool.submit(results, under, *common, CUDA_VISIBLE_DEVICES="1")
        own, gm = (r.result() for r in runs)
    else:
        own, gm = results([], *common), results(under, *common)
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"own": own, "gmstitch": gm}, f, indent=1)
    why, unexplained = reasons(), 0
    for name in names:
        if own[name][0] == gm[name][0]:
            continue
        reason = next((text for begin, text in why.items() if name.startswith(begin)), "")
        unexplained += not reason and own[name][0] == "ok"
        print("%s | %s | %s | %s" % (name, own[name][0], gm[name][0], reason or gm[name][1] or own[name][1]))
    ok = [sum(r[0] == "ok" for r in found.values()) for found in (own, gm)]
    print("%d tests: %d ok with PyTorch's allocator, %d with gmstitch; %d fail with gmstitch alone and without a reason"
          % (len(names), *ok, unexplained))
    return sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
