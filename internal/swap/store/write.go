package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"gm/formats/graph"
)

// batchRows is how many rows are held before they are written.
const batchRows = 1 << 14

// WriteGraph writes a valid graph. It sets its Digest, and in its Meta what follows from the graph: name, device, the numbers of operators
// and tensors, the time of all operators, and the peak.
func WriteGraph(w io.Writer, g *Graph) error {
	if err := g.Validate(); err != nil {
		return fmt.Errorf("write graph: %w", err)
	}
	if g.Recorded != nil && len(g.Recorded) != len(g.Tensors) {
		return fmt.Errorf("write graph: BUG: %d recorded tensors of %d", len(g.Recorded), len(g.Tensors))
	}
	meta, sum := g.describe(), sha256.New()
	out := graph.NewWriter(io.MultiWriter(w, sum), meta)
	b := &graph.Batch{}
	for _, l := range g.lines() {
		b.Append(g.row(l, out.Strings().Code))
		if b.Len() == batchRows {
			if err := out.Write(b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err := out.Write(b); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	g.Meta, g.Digest = meta, hex.EncodeToString(sum.Sum(nil))
	return nil
}

// line is what a row of a graph's file is about.
type line struct {
	op            int32
	kind          graph.Kind
	tensor, input int32 // of a row about states or options, -1 and which of the operator's
}

// lines lists the rows in the order in which they are written: by operator, and those of an operator by kind, tensors before what refers to them.
func (g *Graph) lines() []line {
	n := len(g.Ops)
	for i := range g.Tensors {
		n += 1 + len(g.Tensors[i].From) + len(g.Tensors[i].Uses)
	}
	lines := make([]line, 0, n)
	for op := range g.Ops {
		lines = append(lines, line{op: int32(op), kind: graph.KindOp})
	}
	for i := range g.Tensors {
		t, id := &g.Tensors[i], int32(i)
		lines = append(lines, line{op: t.Made, kind: graph.KindTensor, tensor: id})
		for _, input := range t.From {
			lines = append(lines, line{op: t.Made, kind: graph.KindFrom, tensor: id, input: input})
		}
		for _, input := range t.Over {
			lines = append(lines, line{op: t.Made, kind: graph.KindInPlace, tensor: id, input: input})
		}
		for _, op := range t.Uses {
			lines = append(lines, line{op: op, kind: graph.KindUse, tensor: id})
		}
		for _, op := range t.Changed {
			lines = append(lines, line{op: op, kind: graph.KindChanges, tensor: id})
		}
	}
	for i := range g.Ops {
		each := func(kind graph.Kind, n int) {
			for of := range n {
				lines = append(lines, line{op: int32(i), kind: kind, tensor: -1, input: int32(of)})
			}
		}
		each(graph.KindReads, len(g.Ops[i].Reads))
		each(graph.KindChanges, len(g.Ops[i].Changes))
		each(graph.KindOption, len(g.Ops[i].Options))
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.kind, b.kind))
	})
	return lines
}

// row fills a row of the file.
func (g *Graph) row(l line, code func(string) int32) graph.Row {
	op := &g.Ops[l.op]
	r := graph.NewRow(l.kind, int64(l.op), graph.Phase(op.Phase))
	switch l.kind {
	case graph.KindOp:
		r.Name, r.Type, r.Layer = code(op.Name), code(op.Type.String()), op.Layer
		r.DurationNS, r.BaseBytes = int64(op.Duration), op.Base
		if g.Origin != nil {
			r.Origin = int64(g.Origin[l.op])
		}
		return r
	case graph.KindTensor:
		t := &g.Tensors[l.tensor]
		r.Name, r.Bytes, r.Layer, r.Role = code(t.Name), t.Bytes, t.Layer, code(t.Role.String())
		r.RecomputeNS, r.RowBytes, r.BaseBytes = int64(t.Recompute), t.Row, t.Scratch
		if g.Recorded != nil {
			known := &g.Recorded[l.tensor]
			r.Saved, r.Version, r.DType, r.Shape = known.Saved, known.Version, code(known.DType), code(known.Shape)
		}
	case graph.KindFrom, graph.KindInPlace:
		r.Input = int64(l.input)
	case graph.KindReads:
		r.Name = code(g.States[op.Reads[l.input]])
	case graph.KindChanges:
		if l.tensor < 0 {
			r.Name = code(g.States[op.Changes[l.input]])
		}
	case graph.KindOption:
		o := &op.Options[l.input]
		r.Name, r.Bytes, r.DurationNS = code(o.Name), o.Workspace, int64(o.Duration)
	}
	r.Tensor = int64(l.tensor)
	return r
}
