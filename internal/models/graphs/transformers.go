package graphs

import (
	"strings"

	"gm/internal/models/shapes"
)

// Bytes for each parameter on a GPU: weights and gradients, in half and single precision, and Adam's three numbers in single precision in
// Megatron-LM; weights, gradients and Adam's two numbers in half precision in plain PyTorch.
const (
	mixedState = 2 + 4 + 12
	plainState = 2 + 2 + 4
)

// Bytes for each logit at the loss: one copy, in which the gradient is made, by Megatron-LM's kernel; in PyTorch the logits, and in single
// precision they, and their softmax, from which the gradient is made.
const (
	fusedLogit = 2
	plainLogit = 2 + 4 + 4
)

// onOneGPU is the number of parameters below which a Llama is listed: its step is that of one GPU, unless it is told otherwise.
const onOneGPU = 10e9

// transformers lists MEMO's GPTs and small Llamas.
func transformers() []Entry {
	var entries []Entry
	for _, m := range shapes.Memo() {
		t := transformer{Transformer: m, state: mixedState, logit: fusedLogit}
		entries = append(entries, t.entry("MEMO's GPT of its table 2, in Megatron-LM", "a800", 8, gpt))
	}
	for _, m := range shapes.Transformers() {
		if strings.HasPrefix(m.Name, "llama-") && m.Parameters() < onOneGPU {
			t := transformer{Transformer: m, state: plainState, logit: plainLogit}
			entries = append(entries, t.entry(m.About+", in PyTorch without a compiler", "h200", 1, llama))
		}
	}
	return entries
}

// entry makes an entry of a transformer whose tokens and GPUs, and what else may be given, are parameters.
func (t transformer) entry(about, device string, tensor int64, train func(*transformer) (*Model, error)) Entry {
	return Entry{t.Name, about, device, []shapes.Parameter{
		{Name: "seq", About: "tokens of a sequence", Default: 64 << 10, Least: 1, Most: 1 << 24},
		{Name: "batch", About: "sequences in a step", Default: 1, Least: 1, Most: 1 << 12},
		{Name: "layers", About: "layers", Default: t.Layers, Least: 1, Most: 1 << 10},
		{Name: "tp", About: "GPUs that split each layer, and the tokens between", Default: tensor, Least: 1, Most: 64},
		{Name: "cp", About: "GPUs that split the sequence", Default: 1, Least: 1, Most: 64},
		{Name: "state", About: "bytes for each parameter on its GPU", Default: t.state, Least: 2, Most: 64},
		{Name: "logit", About: "bytes for each logit at the loss", Default: t.logit, Least: 0, Most: 64},
	}, func(v values) (*Model, error) {
		t := t
		t.device, t.sequence, t.batch, t.Layers = v.device, v.of["seq"], v.of["batch"], v.of["layers"]
		t.tensor, t.context, t.state, t.logit = v.of["tp"], v.of["cp"], v.of["state"], v.of["logit"]
		return train(&t)
	}}
}

// gpt counts what is in matrices, as MEMO does.
func gpt(t *transformer) (*Model, error) {
	t.parameters = t.Matrices()
	return t.train(func() block { return new(gptBlock) })
}

func llama(t *transformer) (*Model, error) {
	t.parameters = t.Parameters()
	return t.train(func() block { return new(llamaBlock) })
}
