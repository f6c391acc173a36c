package main

import (
	"errors"
	"fmt"

	"gm/formats/column"
	"gm/formats/graph"
	"gm/internal/cli"
	"gm/internal/swap/store"
	"gm/internal/trace/input"
)

// openTrace opens the named trace, or standard input for "-" or "". If the file is a graph, the error names the commands for it.
func openTrace(c *cli.Context, name string) (*input.Trace, error) {
	source, err := input.Open(c, name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	of := isGraph(source)
	t, err := input.NewTrace(source)
	if err != nil && of {
		err = fmt.Errorf("%w: for a graph, use gmplan step, or gmplan order", err)
	}
	return t, err
}

// openSource opens a file of a kind, or of another one that takes its place.
func openSource(name, kind string) (*column.Source, error) {
	source, err := column.OpenSource(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return source, nil
}

// readGraph reads a graph from an open file.
func readGraph(source *column.Source) (g *store.Graph, err error) {
	r, err := graph.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return store.DecodeGraph(r)
}

// isGraph reports whether a file is a graph.
func isGraph(source *column.Source) bool {
	kind, err := column.Kind(source, source.Size())
	return err == nil && kind == "graph"
}
