package main

import (
	"fmt"
	"io"
	"os"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/importer"
	"gm/internal/trace/ranks"
)

type importCmd struct {
	File   string `arg:"" optional:"" default:"-" name:"file" help:"A PyTorch memory snapshot (pickle), a profile of torch.profiler (JSON), an RMM log, an STAlloc trace, a minimalloc CSV or a plain CSV, which may be compressed by gzip. The format is detected from the content. Standard input by default, or for '-'."`
	Output string `short:"o" placeholder:"FILE" help:"Write the trace to this file. Standard output by default."`
}

// Help implements kong.HelpProvider.
func (cmd *importCmd) Help() string {
	return "Example: gmtrace import snapshot.pickle.gz -o job.parquet"
}

// Run implements the command.
func (cmd *importCmd) Run(c *cli.Context) error {
	if err := cli.CheckFiles([]string{cmd.File}, []string{cmd.Output}); err != nil {
		return err
	}
	in, name := os.Stdin, "standard input"
	if cmd.File != "-" {
		if ranks.IsFolder(cmd.File) {
			return fmt.Errorf("%s is a folder: name a file in it", cmd.File)
		}
		f, err := os.Open(cmd.File)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, cmd.File
	}
	size := int64(0)
	if info, err := in.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	progress := c.Progress("import "+name, size)
	defer progress.End()
	return c.Binary(cmd.Output, func(out io.Writer) error {
		w := trace.NewWriter(out, trace.Meta{})
		if err := importer.Import(c.Reader(progress.Reader(in)), name, w, func(text string) { c.Warn("%s", text) }); err != nil {
			return err
		}
		return w.Close()
	})
}
