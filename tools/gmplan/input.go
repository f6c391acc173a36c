package main

import (
	"errors"
	"fmt"

	"gm/formats/column"
	"gm/formats/graph"
	"gm/formats/trace"
	"gm/internal/swap/store"
	"gm/internal/trace/importer"
)

// input is a trace and its file.
type input struct {
	*trace.Reader
	source *column.Source
}

// openTrace opens the named trace, or standard input for "-" or "". If the file is an instance or a graph, the error names the command for it.
func openTrace(name string) (*input, error) {
	source, err := column.OpenSource(name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	r, err := trace.NewReader(source, source.Size(), source.Name())
	if err != nil {
		if errors.Is(err, column.ErrNotParquet) && isInstance(source) {
			err = fmt.Errorf("%w: for an instance as CSV, use gmplan solve", err)
		}
		if isGraph(source) {
			err = fmt.Errorf("%w: for a graph, use gmplan step, or gmplan order", err)
		}
		return nil, errors.Join(err, source.Close())
	}
	return &input{r, source}, nil
}

// Close closes the file.
func (in *input) Close() error { return errors.Join(in.Reader.Close(), in.source.Close()) }

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

// isInstance reports whether a file begins like a CSV of buffers.
func isInstance(source *column.Source) bool {
	var head [4096]byte
	n, _ := source.ReadAt(head[:], 0) // the file may be shorter
	return importer.Detect(head[:n]) == importer.MiniMalloc
}

// isGraph reports whether a file is a graph.
func isGraph(source *column.Source) bool {
	kind, err := column.Kind(source, source.Size())
	return err == nil && kind == "graph"
}
