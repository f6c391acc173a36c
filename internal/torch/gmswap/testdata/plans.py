"""Schedules made by hand, of the graph that the hook records."""

import json

OFFLOAD, FREE, PREFETCH, AWAIT, RECOMPUTE, SETTLE = range(6)
ORDER = {SETTLE: 0, FREE: 1, OFFLOAD: 2, PREFETCH: 3, AWAIT: 4, RECOMPUTE: 5}


class Planner(object):
    """Whatever is not needed soon goes out (offload), or is recomputed where it can be (remake), or does the one with its first rows and
    the other with the rest (rows)."""

    def __init__(self, how):
        self.how, self.made, self.remade = how, 0, 0

    def plan(self, request):
        request = json.loads(request)
        if "sizes" in request:
            return json.dumps({"sizes": [dict(self.answer(sized(request["graph"], size)), error="") for size in request["sizes"]]})
        return json.dumps(self.answer(request["graph"]))

    def answer(self, graph):
        self.made += 1
        self.actions, self.tensors = [], graph["tensors"]
        first = next(i for i, o in enumerate(graph["ops"]) if o["phase"] == 1)
        remade = set()
        for i, t in enumerate(graph["tensors"]):
            before, after = [u for u in t["uses"] if u < first], [u for u in t["uses"] if u >= first]
            last = before[-1] if before else t["made"]
            if not after or after[0] - last < 4:
                continue
            if self.how == "rows" and t.get("row"):
                self.rows(i, t, last, max(first, after[0] - 2), after[0])
            elif self.how != "offload" and self.may_be_remade(t, after[0]) and not remade & set(t["from"]):
                self.actions += [(FREE, i, last + 1, 0), (RECOMPUTE, i, after[0], 0)]
                remade.add(i)
            else:
                self.copied(i, t, last, max(first, after[0] - 2), after[0])
        self.remade = sum(a[0] == RECOMPUTE for a in self.actions)
        self.actions.sort(key=lambda a: (a[2], ORDER[a[0]]))
        return {"policy": self.how, "device": 1, "step_ns": 1, "plain_ns": 1, "peak": 1, "plain_peak": 1, "actions": self.actions}

    def may_be_remade(self, t, at):
        return "from" in t and all(self.tensors[i]["uses"][-1] >= at for i in t["from"])

    def rows(self, i, t, last, early, need):
        part = t["bytes"] // t["row"] // 3 * t["row"]
        self.actions += [(OFFLOAD, i, t["made"] + 1, part), (FREE, i, last + 1, 0), (PREFETCH, i, early, part), (RECOMPUTE, i, need, 0)]

    def copied(self, i, t, last, early, need):
        self.actions += [(OFFLOAD, i, t["made"] + 1, t["bytes"]), (FREE, i, last + 1, 0), (PREFETCH, i, early, t["bytes"])]
        if i % 3 == 0:
            self.actions.append((AWAIT, i, need, 0))
        if i % 5 == 0:
            self.actions.append((SETTLE, i, last + 1, 0))


def sized(graph, size):
    """Returns the graph of a step of another size."""
    ops = [dict(op, ns=ns, base=base) for op, ns, base in zip(graph["ops"], size["ns"], size["bases"])]
    tensors = [dict(t, bytes=nbytes, recompute_ns=ns) for t, nbytes, ns in zip(graph["tensors"], size["bytes"], size["recompute_ns"])]
    return dict(graph, ops=ops, tensors=tensors)
