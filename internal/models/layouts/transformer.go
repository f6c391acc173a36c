package layouts

import "gm/internal/dsa"

// Transformer is a GPT and how it is trained: bf16, one sequence at a time, with FlashAttention.
type Transformer struct {
	Name   string
	Layers int
	Hidden int64
	FFN    int64
	Heads  int64
	Vocab  int64
	Tokens int64 // of the sequence

	Shards        int64 // GPUs that split the heads, the feed-forward and the vocabulary; 0 for one
	Microbatches  int   // in an iteration; 0 for one
	Offload       bool  // what a layer's backward needs is in rounding buffers, which are not requested
	KeepGradients bool  // those of weights live on to the end of the iteration, else they are handed on at once
}

// Models are those of MEMO's table 2, for sequences of so many tokens, on eight GPUs that split the layers.
func Models(tokens int64) []Transformer {
	const vocabulary, shards = 50257, 8
	models := []Transformer{
		{Name: "7B", Layers: 32, Hidden: 4096, FFN: 16384, Heads: 32, Vocab: vocabulary, Tokens: tokens},
		{Name: "13B", Layers: 40, Hidden: 5120, FFN: 20480, Heads: 40, Vocab: vocabulary, Tokens: tokens},
		{Name: "30B", Layers: 48, Hidden: 7168, FFN: 28672, Heads: 56, Vocab: vocabulary, Tokens: tokens},
		{Name: "65B", Layers: 80, Hidden: 8192, FFN: 32768, Heads: 64, Vocab: vocabulary, Tokens: tokens},
	}
	for i := range models {
		models[i].Shards = shards
	}
	return models
}

// Problem returns the requests of an iteration. Parameters and the optimizer's state are not among them.
func (m Transformer) Problem() *dsa.Problem {
	t := newTape()
	m.iteration(t)
	return t.finish()
}

// Bytes of a number.
const (
	half   = 2
	single = 4
	index  = 8
)

// hidden returns the bytes of a vector of the hidden size for each token.
func (m Transformer) hidden() int64 { return half * m.Tokens * m.Hidden }

// shard returns the part of a number that one GPU has.
func (m Transformer) shard(n int64) int64 {
	shards := max(m.Shards, 1)
	return (n + shards - 1) / shards
}

// heads returns the bytes of the heads' vectors, together of the hidden size, for each token.
func (m Transformer) heads() int64 { return m.shard(m.hidden()) }

// inner returns the bytes of a vector of the feed-forward size for each token.
func (m Transformer) inner() int64 { return m.shard(half * m.Tokens * m.FFN) }

// iteration requests what forward and backward of all microbatches do.
func (m Transformer) iteration(t *tape) {
	var grads gradients
	for range max(m.Microbatches, 1) {
		m.microbatch(t, &grads)
	}
	t.free(grads.kept...)
}

// microbatch goes forward through all layers, and back.
func (m Transformer) microbatch(t *tape, grads *gradients) {
	grads.next, grads.keep = 0, m.KeepGradients
	tokens := t.alloc(index * m.Tokens)
	x := t.alloc(m.hidden())
	layers := make([]saved, m.Layers)
	for i := range layers {
		x = m.forward(t, x, &layers[i])
	}
	g := m.classify(t, x, grads)
	for i := len(layers) - 1; i >= 0; i-- {
		g = m.backward(t, g, &layers[i], grads)
	}
	grads.add(t, m.shard(half*m.Vocab*m.Hidden))
	t.free(g, tokens)
}

// classify is the last normalization, the logits and the loss, forward and backward. It returns the gradient of x.
func (m Transformer) classify(t *tape, x buffer, grads *gradients) buffer {
	stats, normed := t.alloc(2*single*m.Tokens), t.alloc(m.hidden())
	logits := t.alloc(m.shard(half * m.Tokens * m.Vocab))
	wide := t.alloc(m.shard(single * m.Tokens * m.Vocab))
	losses := t.alloc(single * m.Tokens)
	loss := t.alloc(single)
	t.free(logits)
	back := t.alloc(m.shard(half * m.Tokens * m.Vocab))
	t.free(wide, losses, loss)
	g := t.alloc(m.hidden())
	grads.add(t, m.shard(half*m.Vocab*m.Hidden))
	t.free(back, normed)
	gx := t.alloc(m.hidden())
	grads.add(t, 2*half*m.Hidden)
	t.free(g, stats, x)
	return gx
}

// gradients are those of weights.
type gradients struct {
	keep bool
	kept []buffer
	next int // the one that the next is added to, when there is one already
}

// add makes the gradient of a weight.
func (g *gradients) add(t *tape, size int64) {
	b := t.alloc(size)
	if g.next++; g.keep && g.next > len(g.kept) {
		g.kept = append(g.kept, b)
		return
	}
	t.free(b)
}
