"""Prints how much longer steps take under limits once schedules are made, from results of limits.py: by rows, the ratios to the same steps without a limit, from
the 21st step on, and the medians of these steps.

Usage: python3 late.py RESULTS.csv
"""

import csv
import statistics
import sys

FIRST = 19  # results begin with the second step


def main():
    csv.field_size_limit(1 << 24)
    plain = {}
    print("%-24s %-8s %6s %7s %5s %7s %9s %9s" % ("schedules", "program", "median", "9 of 10", "worst", "steps", "PyTorch", "gmswap"))
    with open(sys.argv[1], newline="") as f:
        for row in csv.DictReader(f, delimiter=";"):
            steps = [float(x) for x in row["steps"].split()][FIRST:]
            if row["share"] == "100":
                plain[row["program"]] = steps
                continue
            alone = plain[row["program"]]
            ratios = sorted(step / other for step, other in zip(steps, alone))
            print("%-24s %-8s %6.2f %7.2f %5.1f %7d %6.0f ms %6.0f ms" % (
                row.get("schedules", row.get("build", "")), row["program"], statistics.median(ratios), ratios[len(ratios) * 9 // 10], ratios[-1], len(ratios),
                1e3 * statistics.median(alone), 1e3 * statistics.median(steps)))


main()
