package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gm/formats/summary"
	"gm/internal/bench/fleet"
	"gm/internal/cli"
	"gm/internal/trace/input"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

type summaryCmd struct {
	Jobs    []string `arg:"" optional:"" name:"trace" help:"Jobs: the folder with the traces of a job's ranks, a trace, or a recording that gmtrace import reads."`
	Output  string   `short:"o" required:"" placeholder:"FOLDER" help:"The dataset. A job that is there already is replaced."`
	Job     string   `placeholder:"ID" help:"What tells the job apart from all others. By default the name of the file or folder, the time at which it began, and a digest of its first process."`
	Name    string   `placeholder:"NAME" help:"What was run, the same each time it runs. By default the command, or what the trace was made from."`
	Compact bool     `help:"Merge the files of each week into one, after the jobs are added: a dataset of many jobs is then read faster."`
}

// Help implements kong.HelpProvider.
func (cmd *summaryCmd) Help() string {
	return "Example: gmtrace summary -o fleet/ traces/\n\nExample: gmtrace summary -o fleet/ --compact\n\n" +
		"The dataset has a folder for each week and in it a file for each job, which DuckDB, Spark and pandas read as one table. docs/fleet.md, in share/doc/gm, has queries."
}

// Run implements the command.
func (cmd *summaryCmd) Run(c *cli.Context) error {
	switch {
	case len(cmd.Jobs) == 0 && !cmd.Compact:
		return cli.Usage("name a job: a trace, or the folder with the traces of its ranks")
	case len(cmd.Jobs) != 1 && cmd.Job != "":
		return cli.Usage("--job is the name of one job, and %d are given", len(cmd.Jobs))
	}
	var failed []error
	added := map[string]string{} // a job: what it was read from
	for _, name := range cmd.Jobs {
		rows, err := cmd.read(c, name)
		failed = append(failed, err)
		if len(rows) == 0 {
			continue
		}
		cmd.identify(rows, name)
		job := rows[0].Job
		if other, ok := added[job]; ok {
			failed = append(failed, fmt.Errorf("%s and %s are the same job, %s: the second is left out", other, name, job))
			continue
		}
		added[job] = name
		if err := fleet.Add(cmd.Output, rows, c.File); err != nil {
			failed = append(failed, err)
			continue
		}
		c.Note("%s: %s", job, units.Count(len(rows), "row"))
	}
	if cmd.Compact {
		done, err := fleet.Compact(cmd.Output, c.File)
		failed = append(failed, err)
		c.Note("%s merged in %s: %s, and %s left out", units.Count(done.Files, "file"), units.Count(done.Weeks, "week"), units.Count(done.Rows, "row"),
			units.Count(done.Doubles, "older row"))
	}
	return errors.Join(failed...)
}

// read sums up a job. It returns rows and an error for a job that is not whole.
func (cmd *summaryCmd) read(c *cli.Context, name string) (rows []*summary.Summary, err error) {
	if ranks.IsFolder(name) {
		return cmd.readRanks(c, name)
	}
	source, err := input.Open(c, name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if rows, err = fleet.Trace(c.Context(), source); err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: holds no allocations", source.Name())
	}
	return rows, err
}

func (cmd *summaryCmd) readRanks(c *cli.Context, folder string) ([]*summary.Summary, error) {
	j, err := ranks.Open(folder)
	if err != nil {
		return nil, err
	}
	progress := c.Progress("sum up ranks", int64(len(j.Members)))
	rows, err := fleet.Ranks(c.Context(), j, func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return nil, err
	}
	for _, problem := range j.Problems() {
		c.Warn("%s: %s", folder, problem)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: holds no allocations", folder)
	}
	return rows, j.Incomplete()
}

// identify names the job of rows.
func (cmd *summaryCmd) identify(rows []*summary.Summary, file string) {
	job := cmd.Job
	if job == "" {
		job = fleet.Identity(strings.TrimSuffix(filepath.Base(filepath.Clean(file)), ".parquet"), rows)
	}
	name := cmp.Or(cmd.Name, rows[0].Name)
	for _, s := range rows {
		s.Job, s.Name = job, name
	}
}
