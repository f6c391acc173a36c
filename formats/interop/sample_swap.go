package main

import (
	"fmt"
	"os"

	"gm/formats/graph"
	"gm/formats/schedule"
)

// sampleForward is the number of operators of the sample graph in its forward pass, and in its backward pass. Each operator of the
// forward pass writes a tensor, which the next operator and its counterpart in the backward pass read.
const sampleForward = 1019

// sampleCounterpart returns the operator of the other pass that corresponds to an operator.
func sampleCounterpart(op int64) int64 { return 2*sampleForward - 1 - op }

func writeGraph(f *os.File) error {
	const ops = 2 * sampleForward
	w := graph.NewWriter(f, graph.Meta{Name: "sample", Device: "sample", Operators: ops, Tensors: sampleForward, Source: graph.SourceShapes})
	b := &graph.Batch{}
	about := func(kind graph.Kind, op, tensor, input int64) {
		r := graph.NewRow(kind, op, graph.Phase(op/sampleForward))
		r.Tensor, r.Input = tensor, input
		b.Append(r)
	}
	for op := range int64(ops) {
		b.Append(sampleOp(op, w.Strings().Code))
		if op < sampleForward {
			b.Append(sampleTensor(op, w.Strings().Code))
		}
		if op%7 > 0 && op < sampleForward {
			about(graph.KindFrom, op, op, op-1)
		}
		if op > 0 && op <= sampleForward {
			about(graph.KindUse, op, op-1, -1)
		} else if op > 0 {
			about(graph.KindUse, op, sampleCounterpart(op), -1)
		}
	}
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}

func sampleOp(op int64, code func(string) int32) graph.Row {
	r := graph.NewRow(graph.KindOp, op, graph.Phase(op/sampleForward))
	r.Name, r.Type = code(fmt.Sprintf("layers.%d.\u03bb", op%211)), code([]string{"linear", "norm", "attention"}[op%3])
	r.Layer, r.DurationNS, r.BaseBytes = int32(op%53)-1, 1009*(op*op%10007), 1<<30+sampleSize(op)
	return r
}

// sampleTensor is the tensor that an operator writes, whose number it has.
func sampleTensor(op int64, code func(string) int32) graph.Row {
	r := graph.NewRow(graph.KindTensor, op, graph.Forward)
	r.Tensor, r.Name, r.Layer, r.Bytes = op, code(fmt.Sprintf("saved %d", op%101)), int32(op%53)-1, sampleSize(op)
	r.RecomputeNS, r.BaseBytes, r.Role = op*op, op*op%4099, code([]string{"inner", "layer-input"}[op%2])
	r.Saved, r.Version, r.DType, r.Shape = int32(op*op%10007)-1, op%7, code([]string{"half", "float"}[op%2]), code(fmt.Sprintf("[%d]", op%13))
	return r
}

// writeSchedule writes a schedule that copies every tensor of the sample's graph to the host, and most of them back.
func writeSchedule(f *os.File) error {
	var end int64
	slots := make([]int64, sampleForward)
	for t := range slots {
		slots[t] = end
		end += sampleSize(int64(t))
	}
	w := schedule.NewWriter(f, schedule.Meta{Operators: 2 * sampleForward, Tensors: sampleForward, Policy: "sample", Link: "{}", HostPeak: end})
	b := &schedule.Batch{}
	add := func(kind schedule.Kind, tensor, at, bytes, slot int64) {
		name := w.Strings().Code(fmt.Sprintf("saved %d", tensor%101))
		b.Append(schedule.Action{Kind: kind, Tensor: tensor, Name: name, Operator: at, Bytes: bytes, Slot: slot, Lane: kind.Lane()})
	}
	for t := range int64(sampleForward) {
		add(schedule.Offload, t, t+1, sampleSize(t), slots[t])
		if t%3 > 0 {
			add(schedule.Free, t, t+1, 0, -1)
		}
	}
	for t := int64(sampleForward - 2); t >= 0; t-- {
		kind := schedule.Recompute
		if t%5 > 0 {
			kind = schedule.Await
			add(schedule.Prefetch, t, sampleCounterpart(t), sampleSize(t), slots[t])
		}
		add(kind, t, sampleCounterpart(t), 0, -1)
	}
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}
