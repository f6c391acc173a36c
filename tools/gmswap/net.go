package main

import (
	"fmt"
	"io"
	"os"

	"gm/formats/graph"
	"gm/internal/cli"
	"gm/internal/models/graphs"
	"gm/internal/swap/store"
)

type netCmd struct {
	Network    string `arg:"" optional:"" name:"name,key=value..." help:"The network and its parameters, such as gpt-7b,seq=64Ki,tp=4,device=h200."`
	Output     string `short:"o" placeholder:"FILE" help:"Where the graph goes. Standard output by default."`
	Algorithms string `placeholder:"FILE" help:"Give convolutions the algorithms of this table as options: their times and workspaces, as experiments/workspaces/cudnn.py measures them."`
	Arithmetic string `default:"fp32" enum:"fp32,tf32" help:"Which algorithms of the table: fp32 (the default), or tf32, that of tensor cores."`

	List bool `help:"List the networks, their parameters and the devices."`
	JSON bool `name:"json" help:"Print the list as JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *netCmd) Help() string {
	return "Example: gmswap net gpt-7b,seq=128Ki,device=h200 -o g.parquet\n\n" +
		"Sizes are exact. Times are what arithmetic and memory traffic take at the rates that kernels reach on the device. Numbers may " +
		"end in K, M or G: powers of 1024."
}

// Run implements the command.
func (cmd *netCmd) Run(c *cli.Context) error {
	switch {
	case cmd.List && cmd.Network != "":
		return cli.Usage("--list takes no network")
	case cmd.List && cmd.JSON:
		return cli.WriteJSON(c.Out, list())
	case cmd.List:
		return list().print(c.Out)
	case cmd.JSON:
		return cli.Usage("--json is for --list: a graph is Parquet")
	case cmd.Network == "":
		return cli.Usage("name a network: gmswap net --list lists them")
	}
	if err := cli.CheckFiles([]string{cmd.Algorithms}, []string{cmd.Output}); err != nil {
		return err
	}
	m, err := cmd.build()
	if err != nil {
		return err
	}
	return c.Binary(cmd.Output, func(w io.Writer) error {
		return store.WriteGraph(w, &store.Graph{Graph: m.Graph, Meta: graph.Meta{Source: graph.SourceShapes, WorldSize: m.GPUs}})
	})
}

// build makes the network. With algorithms it has no workspaces but theirs.
func (cmd *netCmd) build() (*graphs.Model, error) {
	spec := cmd.Network
	if cmd.Algorithms != "" {
		spec += ",workspace=0"
	}
	m, err := graphs.Build(spec)
	if err != nil {
		return nil, cli.Usage("%v", err)
	}
	if cmd.Algorithms == "" {
		return m, nil
	}
	file, err := os.Open(cmd.Algorithms)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	algorithms, err := graphs.ReadAlgorithms(file)
	if err == nil {
		err = m.Offer(algorithms, cmd.Arithmetic)
	}
	if err != nil {
		return nil, fmt.Errorf("algorithms of %s: %w", cmd.Algorithms, err)
	}
	return m, nil
}
