"""Python's threads take turns sooner while schedules are made."""

import sys
import threading

from gmswap_hook.planner import Planning, Turns

begun, end = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]


def make(number):
    begun[number].set()
    end[number].wait()
    if number:
        raise ValueError("there is none")
    return "a schedule"


if __name__ == "__main__":
    before = sys.getswitchinterval()
    made = []
    for number in range(2):
        made.append(Planning(lambda number=number: make(number)))
        begun[number].wait()
        assert sys.getswitchinterval() <= 1.01 * Turns.SECONDS < before
    for number in range(2):
        end[number].set()
        assert made[number].come(None)
        assert (sys.getswitchinterval() == before) == (number == 1), "the other one is still being made" if number == 0 else "none is being made"
    assert made[0].schedule == "a schedule" and made[1].failed == "there is none"
