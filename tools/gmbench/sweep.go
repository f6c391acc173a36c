package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"

	"gm/internal/bench"
	"gm/internal/bench/sweep"
	"gm/internal/cli"
)

type sweepCmd struct {
	Spec string `arg:"" name:"sweep.json" help:"The matrix: traces and synthetic jobs by allocators and capacities."`
	Dir  string `short:"d" required:"" placeholder:"FOLDER" help:"Folder of the results. Tasks with a result are not run again."`
	Task string `placeholder:"N" help:"Run the task of this number, from 0, alone."`
	List bool   `xor:"print" help:"Print the numbers of the tasks, one a line, and run nothing."`

	Slurm bool `xor:"print" help:"Print a script for sbatch, whose array runs the tasks, and run nothing."`
}

// Help implements kong.HelpProvider.
func (cmd *sweepCmd) Help() string {
	return "Example: gmbench sweep s.json -d results --list | xargs -P 8 -I N gmbench sweep s.json -d results --task N && gmbench merge s.json -d results"
}

// Run implements the command.
func (cmd *sweepCmd) Run(c *cli.Context) error {
	tasks, err := sweep.Read(cmd.Spec)
	if err != nil {
		return err
	}
	if cmd.List {
		for i := range tasks {
			if _, err := fmt.Fprintln(c.Out, i); err != nil {
				return err
			}
		}
		return nil
	}
	if cmd.Slurm {
		return cmd.script(c.Out, len(tasks))
	}
	if cmd.Task != "" {
		i, err := strconv.Atoi(cmd.Task)
		if err != nil || i < 0 || i >= len(tasks) {
			return cli.Usage("--task: %q is not within 0 and %d", cmd.Task, len(tasks)-1)
		}
		tasks = tasks[i : i+1]
	}
	if err := os.MkdirAll(cmd.Dir, 0o777); err != nil {
		return fmt.Errorf("make a folder of results: %w", err)
	}
	progress := c.Progress("sweep", int64(len(tasks)))
	defer progress.End()
	var failed error
	for i := range tasks {
		if err := c.Context().Err(); err != nil {
			return err
		}
		_, err := tasks[i].Run(c.Context(), cmd.Dir)
		failed = errors.Join(failed, err)
		progress.Add(1)
	}
	return failed
}

type mergeCmd struct {
	Spec string `arg:"" name:"sweep.json" help:"The matrix."`
	Dir  string `short:"d" required:"" placeholder:"FOLDER" help:"Folder of the results."`
	JSON bool   `name:"json" help:"Print JSON in place of CSV."`
}

// Help implements kong.HelpProvider.
func (cmd *mergeCmd) Help() string { return "Example: gmbench merge s.json -d results >table.csv" }

// Run implements the command.
func (cmd *mergeCmd) Run(c *cli.Context) error {
	tasks, err := sweep.Read(cmd.Spec)
	if err != nil {
		return err
	}
	results, err := sweep.Merge(tasks, cmd.Dir)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, results)
	}
	out := csv.NewWriter(c.Out)
	out.Write([]string{
		"trace", "device", "allocator", "capacity_bytes", "peak_allocated_bytes", "peak_reserved_bytes", "driver_calls", "driver_ns", "retries", "oom_row",
	})
	for _, r := range results {
		for _, row := range r.Rows {
			out.Write(mergedRow(r.Task.Capacity, &row))
		}
	}
	out.Flush()
	return out.Error()
}

func mergedRow(capacity int64, r *bench.Row) []string {
	cells := []string{r.Trace, strconv.Itoa(int(r.Device)), r.Allocator}
	for _, n := range []int64{capacity, r.PeakAllocated, r.PeakReserved, r.DriverCalls, r.DriverNS, r.Retries} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	if r.OOM == nil {
		return append(cells, "")
	}
	return append(cells, strconv.FormatInt(r.OOM.Row, 10))
}
