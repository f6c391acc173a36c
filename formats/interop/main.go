// Interop prints a summary, as JSON, of what the readers of gm read from a file of each format. check.mjs compares it with
// what DuckDB reads.
//
//	go run ./formats/interop TRACE PLAN GRAPH SCHEDULE
//	go run ./formats/interop -sample DIR    # writes trace, plan, graph and schedule.parquet in DIR
//
// Numbers are printed as strings, since JavaScript cannot hold all integers of 64 bits. Columns of integers are reduced by
// exclusive or, columns of strings to the number of distinct ones.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == "-sample" {
		return writeSamples(args[1])
	}
	if len(args) != len(formats) {
		return errors.New("usage: interop TRACE PLAN GRAPH SCHEDULE | interop -sample DIR")
	}
	seen := map[string]*summary{}
	for i, f := range formats {
		s, err := f.summarize(args[i])
		if err != nil {
			return err
		}
		seen[f.name] = s
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(seen)
}

// formats are the formats, in the order of the arguments.
var formats = []struct {
	name      string
	summarize func(file string) (*summary, error)
	write     func(*os.File) error // a sample
}{
	{"trace", summarizeTrace, writeTrace},
	{"plan", summarizePlan, writePlan},
	{"graph", summarizeGraph, writeGraph},
	{"schedule", summarizeSchedule, writeSchedule},
}

// summary is the part of a file that is compared.
type summary struct {
	Rows     int64             `json:"rows,string"`
	Xor      map[string]string `json:"xor"`      // by column of integers
	Distinct map[string]string `json:"distinct"` // by column of strings
	Peak     int64             `json:"peak,string"`
	Devices  map[string]string `json:"devices,omitempty"` // of a trace and a plan: the peak of live bytes by device
	Lanes    []lane            `json:"lanes,omitempty"`   // of a trace: what was allocated by device and stream
	Top      *stackTotal       `json:"top,omitempty"`     // of a trace: which device and stack allocated the most
}

// lane is what a framework allocated on a stream of a device.
type lane struct {
	Device string `json:"device"`
	Stream string `json:"stream"`
	Allocs string `json:"allocs"`
	Bytes  string `json:"bytes"`
}

// stackTotal is what was allocated on a device with a stack.
type stackTotal struct {
	Device string `json:"device"`
	Stack  string `json:"stack"`
	Allocs string `json:"allocs"`
	Bytes  string `json:"bytes"`
}
