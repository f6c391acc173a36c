package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"gm/internal/bench"
)

// unitsOfBenchmarks tell benchstat how to compare the figures. They are exact, because a replay has the same result each time.
var unitsOfBenchmarks = [...][2]string{
	{"peak-reserved-B", "lower"}, {"peak-allocated-B", "lower"}, {"utilisation", "higher"},
	{"driver-sec", "lower"}, {"driver-calls", "lower"}, {"retries", "lower"}, {"ooms", "lower"},
}

// writeBenchmarks prints the rows as Go prints benchmarks, one line each. A replay that ran out of memory has no other figures.
func writeBenchmarks(w io.Writer, rows []bench.Row) error {
	out := bufio.NewWriter(w)
	for _, u := range unitsOfBenchmarks {
		fmt.Fprintf(out, "Unit %s assume=exact better=%s\n", u[0], u[1])
	}
	for _, r := range rows {
		fmt.Fprintf(out, "BenchmarkReplay/trace=%s/alloc=%s 1", benchmarkName(r.Trace), benchmarkName(r.Allocator))
		if r.OOM != nil {
			fmt.Fprintln(out, " 1 ooms")
			continue
		}
		fmt.Fprintf(out, " %d peak-reserved-B %d peak-allocated-B %.6f utilisation %.9f driver-sec %d driver-calls %d retries 0 ooms\n",
			r.PeakReserved, r.PeakAllocated, r.Utilisation, float64(r.DriverNS)/1e9, r.DriverCalls, r.Retries)
	}
	return out.Flush()
}

// benchmarkName turns a text into a part of a benchmark's name: without spaces, and without the slash that separates parts.
func benchmarkName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, text)
}
