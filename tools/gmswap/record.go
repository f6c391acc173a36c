package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gm/internal/cli"
	"gm/internal/cli/command"
	"gm/internal/units"
)

type recordCmd struct {
	Command   []string    `arg:"" optional:"" passthrough:"" name:"command" help:"The program to run, and its arguments."`
	All       bool        `help:"Record all that a step does and all memory that it takes, for planners of the operators' order. Nothing is moved: the program has to fit."`
	Output    string      `short:"o" placeholder:"FILE" help:"Where the graph goes. Standard output by default; what the program prints then goes to standard error."`
	Host      units.Bytes `placeholder:"SIZE" help:"Use at most this much host memory, all processes together. Three quarters of what is available by default."`
	Allocator string      `default:"stitch" enum:"stitch,torch" help:"Which allocator to use: stitch, gmstitch's, or torch, PyTorch's own (${default})."`
	Library   string      `placeholder:"FILE" help:"A libgm.so to use instead of the one that gmswap contains."`
}

// Help implements kong.HelpProvider.
func (cmd *recordCmd) Help() string {
	return "Example: gmswap record -o g.parquet -- python train.py --steps 5\n\n" +
		"The program is not changed. Its second and third step are recorded, and what does not fit the GPU is moved meanwhile; then it " +
		"goes on unchanged, if it fits. Where several processes train, the graph is that of the first to be recorded. It is written when the program ends, " +
		"by itself or by Ctrl-C. The program's exit status is passed through.\n\n" +
		"With --all nothing is moved, and the third step is recorded, up to the beginning of the fourth: each operator of the forward and the backward pass and the update, and all memory " +
		"that they make, read, change and free."
}

// recordedFiles is what the files of graphs are called in the folder of a run.
const recordedFiles = "graph-%p.parquet"

// Run implements the command.
func (cmd *recordCmd) Run(c *cli.Context) error {
	words, err := command.Words(c.Tool+" record", cmd.Command)
	if err != nil {
		return err
	}
	stdout := os.Stdout
	if cmd.Output == "" || cmd.Output == "-" {
		if err := c.CheckBinary(); err != nil {
			return err
		}
		stdout = os.Stderr
	} else if err := cli.CheckFiles(nil, []string{cmd.Output}); err != nil {
		return err
	}
	run := runCmd{Host: cmd.Host, Policy: "none", Allocator: cmd.Allocator, Library: cmd.Library, all: cmd.All}
	if err := run.findLibrary(); err != nil {
		return err
	}
	return run.inFolder(c, func(folder string) (int, error) {
		run.Record = filepath.Join(folder, recordedFiles)
		status, err := run.runIn(c, folder, words, stdout)
		if err != nil {
			return 0, err
		}
		err = cmd.write(c, folder)
		if err != nil && status != 0 { // the program's status says more than 1 does
			c.Fail(err)
			return status, nil
		}
		return status, err
	})
}

// write writes the graph of the first process that has one.
func (cmd *recordCmd) write(c *cli.Context, folder string) error {
	graphs, err := recorded(folder)
	if err != nil {
		return err
	}
	if len(graphs) == 0 {
		steps := "train for three steps"
		if cmd.All {
			steps = "begin a fourth step of training"
		}
		c.Warn("no PyTorch program was seen to %s on a GPU: there is no graph", steps)
		return nil
	}
	if len(graphs) > 1 {
		c.Note("%d processes were recorded, this is the graph of the first: gmswap run --record 'FILE-%%p' writes all", len(graphs))
	}
	f, err := os.Open(graphs[0].path)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.Binary(cmd.Output, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// recordedGraph is the file of one process.
type recordedGraph struct {
	path    string
	written time.Time
}

// recorded lists the files of graphs in a folder, the first that was written first.
func recorded(folder string) ([]recordedGraph, error) {
	paths, err := filepath.Glob(filepath.Join(folder, strings.ReplaceAll(recordedFiles, "%p", "*")))
	if err != nil {
		return nil, err
	}
	var graphs []recordedGraph
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("find what was recorded: %w", err)
		}
		graphs = append(graphs, recordedGraph{path, info.ModTime()})
	}
	slices.SortFunc(graphs, func(a, b recordedGraph) int {
		return cmp.Or(a.written.Compare(b.written), strings.Compare(a.path, b.path))
	})
	return graphs, nil
}
