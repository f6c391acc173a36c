#!/usr/bin/env python3
"""Writes a value in all protocols, with its text in values.golden. Python 3.11."""

import collections
import pickle

shared = ["shared", 1]


def value():
    return {
        "none": None, "true": True, "false": False,
        "ints": [0, 1, -1, 127, 128, 255, 256, -128, -129, 65535, 65536, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1,
                 2**59 - 1, 2**59, -(2**59), -(2**59) - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63),
                 -(2**63) - 1, -(2**64) + 1, 2**64, -(2**64), 10**30, -(10**30), 2**2100],
        "floats": [0.0, 1.5, -2.25, 1e300, float("inf")],
        "strings": ["", "a", "tab\tnewline\nquote'\"back\\slash", "käse", "Ω", "😀", "\\u0041", "x" * 300],
        "bytes": [b"", b"ab", b"z" * 300],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2), ([], {}), ((1, 2), (1, 2))],
        "shared": [shared, shared, {"again": shared}],
        "long list": list(range(1100)),
        "long dict": {str(i): i for i in range(1100)},
        "nested": [[[[[{"a": [{"b": ({"c": []},)}]}]]]]],
        "sets": [set(), {7}],
        "ordered": collections.OrderedDict(a=1, b=[2]),
        "default": collections.defaultdict(int, c=3),
        5: "key", (1, 2): "pair", None: "none",
    }


def text(v):
    if isinstance(v, bool) or v is None:
        return str(v)
    if isinstance(v, int):
        return str(v) if -(2**63) <= v < 2**64 else "huge"
    if isinstance(v, float):
        return "%g" % v
    if isinstance(v, (str, bytes)):
        return '"' + (v if isinstance(v, bytes) else v.encode()).hex() + '"'
    if isinstance(v, tuple):
        return "(" + ",".join(map(text, v)) + ")"
    if isinstance(v, (list, set)):
        return "[" + ",".join(map(text, v)) + "]"
    return "{" + ",".join(text(k) + ":" + text(x) for k, x in v.items()) + "}"


if __name__ == "__main__":
    v = value()
    for protocol in range(6):
        # Before protocol 3 bytes, before protocol 4 sets, are written as calls.
        w = {k: x for k, x in v.items() if not (k == "bytes" and protocol < 3 or k == "sets" and protocol < 4)}
        with open(f"values-p{protocol}.pickle", "wb") as f:
            f.write(pickle.dumps(w, protocol))
        if protocol in (0, 3, 4):
            with open(f"values-p{protocol}.golden", "w") as f:
                f.write(text(w).replace(",", ",\n") + "\n")
