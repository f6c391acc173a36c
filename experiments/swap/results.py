"""What the sections measured and checked, written down as it comes: swap.json, checks.csv and swap.log."""

import csv
import json
import os

CHECK = ("section", "check", "target", "measured", "held")


class Results:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.log = open(os.path.join(folder, "swap.log"), "a+", errors="replace")
        self.checks, self.section = [], ""
        try:
            with open(os.path.join(folder, "swap.json")) as f:
                self.all = json.load(f)
        except (OSError, ValueError):
            self.all = []

    def put(self, **result):
        self.all.append({"section": self.section, **result})
        path = os.path.join(self.folder, "swap.json")
        with open(path + ".new", "w") as f:
            json.dump(self.all, f, indent=0)
        os.replace(path + ".new", path)

    def check(self, name, target, measured, held):
        row = dict(zip(CHECK, (self.section, name, target, measured, "yes" if held else "NO")))
        self.checks.append(row)
        path = os.path.join(self.folder, "checks.csv")
        new = not os.path.exists(path)
        with open(path, "a", newline="") as f:
            writer = csv.DictWriter(f, CHECK, delimiter=";", lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        print("##", " | ".join(str(row[c]) for c in CHECK), flush=True)

    def lines(self):
        """Returns what the programs said."""
        self.log.seek(0)
        return self.log.read().splitlines()

    def show(self):
        """Prints the tables and returns whether all held."""
        print("\n%-12s %7s %10s %10s %9s %10s %10s %9s %9s %9s" % (
            "how", "tokens", "allocated", "reserved", "step", "foreseen", "foreseen", "out", "in", "host"))
        for r in self.all:
            if "median_s" not in r:
                continue
            account = r.get("account") or {}
            schedule, lanes = account.get("schedule", {}), account.get("lanes", {})
            print("%-12s %7d %7.2f GB %7.2f GB %7.4f s %7.4f s %7.2f GB %6.1f GB %6.1f GB %6.1f GB %s" % (
                r["mode"], r["tokens"], r["allocated"] / 1e9, r["reserved"] / 1e9, r["median_s"], schedule.get("step_ns", 0) / 1e9,
                schedule.get("peak", 0) / 1e9, lanes.get("bytes_out", 0) / 1e9, lanes.get("bytes_in", 0) / 1e9,
                lanes.get("host_peak", 0) / 1e9, r["error"][:50]))
        print()
        for c in self.checks:
            print("%-3s %-8s %-46s %-26s %s" % (c["held"], c["section"], c["check"], c["target"], c["measured"]))
        return all(c["held"] == "yes" for c in self.checks)
