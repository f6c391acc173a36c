"""What the sections measured and checked, written down as it comes: stitch.csv, checks.csv, stitch.json and stitch.log."""

import csv
import json
import os

COLUMNS = ("section", "name", "mode", "rank", "steps", "max_allocated", "max_reserved", "utilisation", "driver_peak", "nvml_peak",
           "median_s", "median_thread_cpu_s", "median_process_cpu_s", "retries", "ooms", "longest", "backend", "error")
CHECK = ("section", "check", "target", "measured", "held")


class Results:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.log = open(os.path.join(folder, "stitch.log"), "a+", errors="replace")
        self.checks, self.section = [], ""
        self.all = self._before()

    def _before(self):
        try:
            with open(os.path.join(self.folder, "stitch.json")) as f:
                return json.load(f)
        except (OSError, ValueError):
            return []

    def add(self, mode, path, **more):
        """Adds what train.py wrote, if it did, and returns it, else None."""
        try:
            with open(path) as f:
                result = json.load(f)
        except (OSError, ValueError):
            return None
        os.remove(path)
        return self.put(mode=mode, **result, **more)

    def put(self, **result):
        result = {"section": self.section, **result}
        self.all.append(result)
        path = os.path.join(self.folder, "stitch.json")
        with open(path + ".new", "w") as f:
            json.dump(self.all, f, indent=0)
        os.replace(path + ".new", path)
        self._row("stitch.csv", COLUMNS, {k: str(v).split("\n")[0][:200] for k, v in result.items()})
        return result

    def check(self, name, target, measured, held):
        row = dict(zip(CHECK, (self.section, name, target, measured, "yes" if held else "NO")))
        self.checks.append(row)
        self._row("checks.csv", CHECK, row)
        print("##", " | ".join(str(row[c]) for c in CHECK), flush=True)

    def _row(self, name, columns, row):
        path = os.path.join(self.folder, name)
        new = not os.path.exists(path)
        with open(path, "a", newline="") as f:
            writer = csv.DictWriter(f, columns, extrasaction="ignore", delimiter=";", lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)

    def show(self):
        """Prints the tables and returns whether all held."""
        print()
        measured = [r for r in self.all if "median_s" in r]
        if measured:
            print("%-13s %-11s %4s %10s %10s %7s %10s %10s %9s %9s" % (
                "workload", "mode", "rank", "allocated", "reserved", "util.", "driver", "NVML", "step", "CPU"))
        for r in measured:
            print("%-13s %-11s %4s %7.2f GB %7.2f GB %7.4f %7.2f GB %7.2f GB %7.4f s %7.4f s %s" % (
                r["name"], r["mode"], r.get("rank", ""), r["max_allocated"] / 1e9, r["max_reserved"] / 1e9, r["utilisation"],
                r["driver_peak"] / 1e9, r["nvml_peak"] / 1e9, r["median_s"], r["median_process_cpu_s"], r["error"][:40]))
        print()
        for c in self.checks:
            print("%-3s %-10s %-50s %-28s %s" % (c["held"], c["section"], c["check"], c["target"], c["measured"]))
        return all(c["held"] == "yes" for c in self.checks)
