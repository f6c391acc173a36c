package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/models/synth"
)

type synthCmd struct {
	Model    string `arg:"" optional:"" name:"name,key=value..." help:"The model and its parameters, such as opt-13b,batch=16,seq=256..1024,ranks=4."`
	Strategy string `placeholder:"LETTERS" default:"N" help:"Ways to save memory: L LoRA, R recomputation, O offload of gradients and optimizer; M single precision for all but the operators; and V for lengths that vary. N, the default, is none of them."`
	Steps    *int64 `placeholder:"N" help:"Number of steps. 10 by default, unless --events is given."`
	Events   *int64 `placeholder:"N" help:"Generate steps until there are at least N events."`
	Seed     uint64 `placeholder:"N" default:"1" help:"Seed of the random lengths. 1 by default."`
	Output   string `short:"o" placeholder:"FILE" help:"Write the trace to this file; or those of all ranks to a folder, a name that ends in a slash, as gmtrace run does. Standard output by default."`
	List     bool   `help:"List the models, their parameters, and the devices."`
	JSON     bool   `name:"json" help:"Print the list as JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *synthCmd) Help() string {
	return "Example: gmtrace synth gpt-65b,ranks=64,rank=3,batch=1,seq=4Ki --strategy R -o t.parquet\n\n" +
		"The operators are those of PyTorch 2.11, in bfloat16 with AdamW, and the models of transformers. Sizes are exact. Times are estimates " +
		"from arithmetic and memory traffic. The same arguments give the same file."
}

// defaultSteps is the number of steps if neither --steps nor --events is given.
const defaultSteps = 10

// Run implements the command.
func (cmd *synthCmd) Run(c *cli.Context) error {
	switch {
	case cmd.List && cmd.Model != "":
		return cli.Usage("--list takes no model")
	case cmd.List:
		return cmd.list(c.Out)
	case cmd.JSON:
		return cli.Usage("--json is for --list: a trace is Parquet")
	case cmd.Model == "":
		return cli.Usage("name a model: gmtrace synth --list lists them")
	}
	run, err := cmd.length()
	if err != nil {
		return err
	}
	strategy, err := synth.ParseStrategy(cmd.Strategy)
	if err != nil {
		return cli.Usage("%v", err)
	}
	job, err := synth.Parse(cmd.Model, strategy)
	if err != nil {
		return cli.Usage("%v", err)
	}
	if strings.HasSuffix(cmd.Output, "/") {
		return cmd.writeRanks(c, job, run)
	}
	if err := cli.CheckFiles(nil, []string{cmd.Output}); err != nil {
		return err
	}
	return c.Binary(cmd.Output, func(out io.Writer) error { return cmd.write(c, out, job, run, trace.Meta{}) })
}

// length returns how much is to be made.
func (cmd *synthCmd) length() (synth.Run, error) {
	run := synth.Run{Seed: cmd.Seed}
	for _, f := range []struct {
		name  string
		given *int64
		to    *int64
	}{{"steps", cmd.Steps, &run.Steps}, {"events", cmd.Events, &run.Rows}} {
		if f.given == nil {
			continue
		}
		if *f.to = *f.given; *f.to < 1 {
			return run, cli.Usage("--%s: %d, expected at least 1", f.name, *f.to)
		}
	}
	if run.Steps == 0 && run.Rows == 0 {
		run.Steps = defaultSteps
	}
	return run, nil
}

// writeRanks writes the traces of all ranks of a job.
func (cmd *synthCmd) writeRanks(c *cli.Context, job *synth.Job, run synth.Run) error {
	for rank := range job.GPUs() {
		host, pid := fmt.Sprintf("node%d", rank/synth.RanksOfHost), 1+rank%synth.RanksOfHost
		name := filepath.Join(cmd.Output, fmt.Sprintf("host=%s/rank=%d/pid=%d/trace.parquet", host, rank, pid))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return fmt.Errorf("write the trace of rank %d: %w", rank, err)
		}
		if err := c.Context().Err(); err != nil {
			return err
		}
		if err := c.File(name, func(out io.Writer) error {
			return cmd.write(c, out, job.On(rank), run, trace.Meta{Host: host, PID: pid})
		}); err != nil {
			return err
		}
	}
	return nil
}

// write writes a trace, with the process of its metadata.
func (cmd *synthCmd) write(c *cli.Context, out io.Writer, job *synth.Job, run synth.Run, process trace.Meta) error {
	progress := c.Progress("synth", max(run.Rows, run.Steps))
	defer progress.End()
	done := int64(0)
	w := trace.NewWriter(out, trace.Meta{})
	err := synth.Write(w, job, run, func(steps, rows int64) {
		if run.Rows == 0 {
			rows = steps
		}
		progress.Add(rows - done)
		done = rows
	})
	if err != nil {
		return err
	}
	w.Meta().Host, w.Meta().PID = process.Host, process.PID
	return w.Close()
}
