"""Says how long operators of PyTorch take on the CPU beside a thread that computes in Python, as one does that makes schedules, with the interval after which
Python's threads take turns by default, and with the one that gmswap run sets meanwhile.

Usage: python3 beside.py
"""

import json
import sys
import threading
import time

import torch

INTERVALS = sys.getswitchinterval(), 1e-4  # seconds; the second is that of Turns in the hook's planner.py
OPERATORS, TIMES = 1500, 3


def compute(stop):
    numbers = {}
    while not stop:
        for i in range(1000):
            numbers[i] = i * 7 % 13
        json.dumps(numbers)


def took(x):
    """Returns how long an operator takes in microseconds."""
    begin = time.perf_counter()
    for _ in range(OPERATORS):
        torch.sin(x)
    return (time.perf_counter() - begin) / OPERATORS * 1e6


def main():
    torch.set_num_threads(1)
    print("%8s %10s   %s" % ("elements", "alone", "beside a thread, by the interval in ms"))
    for elements in 4000, 30000, 100000:
        x = torch.rand(elements)
        alone, stop, beside = took(x), [], {interval: [] for interval in INTERVALS}
        thread = threading.Thread(target=compute, args=(stop,))
        thread.start()
        for interval in INTERVALS * TIMES:
            sys.setswitchinterval(interval)
            beside[interval].append(took(x))
        stop.append(True)
        thread.join()
        print("%8d %7.1f us   %s" % (elements, alone, "; ".join("%g: %s us" % (1e3 * i, ", ".join("%.0f" % us for us in times)) for i, times in beside.items())))


main()
