package main

import (
	"errors"
	"io"
	"slices"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/page"
	"gm/internal/trace/ranks"
	"gm/internal/trace/tags"
)

type pageCmd struct {
	Files  []string `arg:"" optional:"" name:"trace" help:"Traces, and recordings that gmtrace import reads, such as PyTorch snapshots. The page shows them and their GPUs side by side. Or one folder with the traces of a job's ranks, for a page of their curves, their table, and the tensors of up to eight. Standard input if there is none, or for '-'."`
	Output string   `short:"o" required:"" placeholder:"FILE" help:"File for the page, such as page.html."`
	With   []string `placeholder:"FILE" sep:"none" help:"A second run, shown below the first, with what differs between them by tag and by stack."`
}

// Help implements kong.HelpProvider.
func (cmd *pageCmd) Help() string {
	return "Example: gmtrace page -o page.html snapshot.pickle\n\nExample: gmtrace page -o page.html --with after.parquet before.parquet\n\n" +
		"The page needs only a browser: no network, no other file. It shows every tensor over time, as a stack of bytes and at its address, " +
		"which you can zoom into; for each its size, life, tag, stack and neighbours; who holds the memory at any moment; and why a request failed."
}

// Run implements the command.
func (cmd *pageCmd) Run(c *cli.Context) error {
	if len(cmd.Files) == 0 {
		cmd.Files = []string{"-"}
	}
	if len(cmd.With) > 1 {
		return cli.Usage("--with names one run, and more is not compared: %s and %s", cmd.With[0], cmd.With[1])
	}
	read := slices.Concat(cmd.Files, cmd.With)
	if err := cli.CheckFiles(read, []string{cmd.Output}); err != nil {
		return err
	}
	if slices.Contains(cmd.Files, "-") && slices.Contains(cmd.With, "-") {
		return cli.Usage("only one of the traces can be standard input")
	}
	if slices.ContainsFunc(read, ranks.IsFolder) {
		return cmd.ranks(c)
	}
	var all []*page.Recording
	for _, name := range read {
		r, err := readRecording(c, name)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	page.TellApart(all...)
	p := page.Page{Version: cli.Version(), A: page.Join(all[:len(cmd.Files)])}
	p.Title = "GPU memory of " + p.A.Name
	if len(cmd.With) > 0 {
		p.B = all[len(cmd.Files)]
		p.Title += " and " + p.B.Name
	}
	return c.Page(cmd.Output, func(w io.Writer) error { return p.Write(w) })
}

// readRecording reads a trace for a page.
func readRecording(c *cli.Context, name string) (r *page.Recording, err error) {
	source, o, err := openOverview(c, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return nil, err
	}
	return page.Read(source, o, labels)
}
