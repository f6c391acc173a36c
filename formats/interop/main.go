// Interop prints, as JSON, what the readers of gm see in a trace and a plan, for check.mjs to compare with what DuckDB
// sees in them.
//
//	go run ./formats/interop TRACE PLAN
//	go run ./formats/interop -sample DIR    # writes DIR/trace.parquet and DIR/plan.parquet
//
// Numbers are printed as strings, as those of 64 bits do not survive JavaScript. Columns of integers are summed up by
// exclusive or, columns of strings by the number of distinct ones.
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
	if len(args) != 2 {
		return errors.New("usage: interop TRACE PLAN | interop -sample DIR")
	}
	if args[0] == "-sample" {
		return writeSamples(args[1])
	}
	fromTrace, err := summarizeTrace(args[0])
	if err != nil {
		return err
	}
	fromPlan, err := summarizePlan(args[1])
	if err != nil {
		return err
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(map[string]*summary{"trace": fromTrace, "plan": fromPlan})
}

// summary is what is compared of a file.
type summary struct {
	Rows     int64             `json:"rows,string"`
	Xor      map[string]string `json:"xor"`      // by column of integers
	Distinct map[string]string `json:"distinct"` // by column of strings
	Peak     int64             `json:"peak,string"`
}
