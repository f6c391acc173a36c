package network

// Bytes for each parameter on a GPU: weights and gradients, in half and single precision, and Adam's three numbers in single precision in
// Megatron-LM; weights, gradients and Adam's two numbers in half precision in plain PyTorch.
const (
	mixedState = 2 + 4 + 12
	plainState = 2 + 2 + 4
)

// Bytes for each logit at the loss: one copy, in which the gradient is made, by Megatron-LM's kernel; in PyTorch the logits, and in single
// precision they, and their softmax, of which the gradient is made.
const (
	fusedLogit = 2
	plainLogit = 2 + 4 + 4
)

// transformers lists MEMO's GPTs and Llamas.
func transformers() []Entry {
	var entries []Entry
	for _, m := range []struct {
		name                       string
		layers, hidden, ffn, heads int64
	}{
		{"gpt-7b", 32, 4096, 16384, 32},
		{"gpt-13b", 40, 5120, 20480, 40},
		{"gpt-30b", 48, 7168, 28672, 56},
		{"gpt-65b", 80, 8192, 32768, 64},
	} {
		t := transformer{
			layers: m.layers, hidden: m.hidden, ffn: m.ffn, heads: m.heads, groups: m.heads, vocab: 50257, state: mixedState, logit: fusedLogit,
		}
		entries = append(entries, t.entry(m.name, "MEMO's GPT of its table 2, in Megatron-LM", "a800", 8, gpt))
	}
	llama7 := transformer{layers: 32, hidden: 4096, ffn: 11008, heads: 32, groups: 32, vocab: 32000, state: plainState, logit: plainLogit}
	llama8 := transformer{layers: 32, hidden: 4096, ffn: 14336, heads: 32, groups: 8, vocab: 128256, state: plainState, logit: plainLogit}
	return append(entries,
		llama7.entry("llama-7b", "Llama of 6.7 billion parameters, in PyTorch without a compiler", "h200", 1, llama),
		llama8.entry("llama-8b", "Llama 3 of 8.0 billion parameters, in PyTorch without a compiler", "h200", 1, llama))
}

// entry makes an entry of a transformer whose tokens and GPUs, and what else is asked for, are parameters.
func (t transformer) entry(name, about, device string, tensor int64, train func(*transformer) (*Model, error)) Entry {
	return Entry{name, about, device, []Parameter{
		{"seq", "tokens of a sequence", 64 << 10, 1, 1 << 24},
		{"batch", "sequences in a step", 1, 1, 1 << 12},
		{"layers", "layers", t.layers, 1, 1 << 10},
		{"tp", "GPUs that split each layer, and the tokens between", tensor, 1, 64},
		{"cp", "GPUs that split the sequence", 1, 1, 64},
		{"state", "bytes for each parameter on its GPU", t.state, 2, 64},
		{"logit", "bytes for each logit at the loss", t.logit, 0, 64},
	}, func(v values) (*Model, error) {
		t := t
		t.device, t.sequence, t.batch, t.layers = v.device, v.of["seq"], v.of["batch"], v.of["layers"]
		t.tensor, t.context, t.state, t.logit = v.of["tp"], v.of["cp"], v.of["state"], v.of["logit"]
		return train(&t)
	}}
}

// gpt counts what is in matrices, as MEMO does: its TGS and MFU (table 3) agree with no other count.
func gpt(t *transformer) (*Model, error) {
	t.parameters = t.layers*(4*t.hidden*t.hidden+2*t.hidden*t.ffn) + t.vocab*t.hidden
	return t.train(func() block { return new(gptBlock) })
}

func llama(t *transformer) (*Model, error) {
	keys := t.hidden / t.heads * t.groups
	t.parameters = t.layers*(2*t.hidden*(t.hidden+keys)+3*t.hidden*t.ffn+2*t.hidden) + 2*t.vocab*t.hidden + t.hidden
	return t.train(func() block { return new(llamaBlock) })
}
