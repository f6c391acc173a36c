package layouts

import (
	"strings"

	"gm/internal/dsa"
	"gm/internal/models/shapes"
)

// Transformer describes a GPT and its training: bf16, one sequence at a time, with FlashAttention.
type Transformer struct {
	shapes.Transformer
	Tokens int64 // in the sequence

	Shards        int64 // GPUs that split the heads, the feed-forward and the vocabulary; 0 for one
	Microbatches  int   // in an iteration; 0 for one
	Offload       bool  // saved activations are in MEMO's rounding buffers, which are not requested
	KeepGradients bool  // gradients of weights live until the end of the iteration; otherwise they are passed on at once
}

// Models returns the models of MEMO's table 2, named by their size (7B), for sequences of the given number of tokens, on eight GPUs that
// split the layers.
func Models(tokens int64) []Transformer {
	const shards = 8
	var models []Transformer
	for _, m := range shapes.Memo() {
		m.Name = strings.ToUpper(strings.TrimPrefix(m.Name, "gpt-"))
		models = append(models, Transformer{Transformer: m, Tokens: tokens, Shards: shards})
	}
	return models
}

// Problem returns the requests of an iteration, without parameters and the optimizer's state.
func (m Transformer) Problem() *dsa.Problem {
	t := newTape()
	m.iteration(t)
	return t.finish()
}

// The size of a number, in bytes.
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

// heads returns the bytes of the vectors of all heads of a GPU, for each token.
func (m Transformer) heads() int64 { return m.shard(m.hidden()) }

// inner returns the bytes of a vector of the feed-forward size for each token.
func (m Transformer) inner() int64 { return m.shard(half * m.Tokens * m.FFN) }

// iteration makes the requests of the forward and backward passes of all microbatches.
func (m Transformer) iteration(t *tape) {
	var grads gradients
	for range max(m.Microbatches, 1) {
		m.microbatch(t, &grads)
	}
	t.free(grads.kept...)
}

// microbatch makes the requests of one microbatch: forward through all layers, and back.
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
	grads.add(t, m.shard(half*m.Vocabulary*m.Hidden))
	t.free(g, tokens)
}

// classify makes the requests of the last normalization, the logits and the loss, forward and backward. It returns the gradient of x.
func (m Transformer) classify(t *tape, x buffer, grads *gradients) buffer {
	stats, normed := t.alloc(2*single*m.Tokens), t.alloc(m.hidden())
	logits := t.alloc(m.shard(half * m.Tokens * m.Vocabulary))
	wide := t.alloc(m.shard(single * m.Tokens * m.Vocabulary))
	losses := t.alloc(single * m.Tokens)
	loss := t.alloc(single)
	t.free(logits)
	back := t.alloc(m.shard(half * m.Tokens * m.Vocabulary))
	t.free(wide, losses, loss)
	g := t.alloc(m.hidden())
	grads.add(t, m.shard(half*m.Vocabulary*m.Hidden))
	t.free(back, normed)
	gx := t.alloc(m.hidden())
	grads.add(t, 2*half*m.Hidden)
	t.free(g, stats, x)
	return gx
}

// gradients holds the gradients of weights.
type gradients struct {
	keep bool
	kept []buffer
	next int // the gradient to which the next one is added, if it exists already
}

// add requests the gradient of a weight, and adds it to that of earlier microbatches.
func (g *gradients) add(t *tape, size int64) {
	b := t.alloc(size)
	if g.next++; g.keep && g.next > len(g.kept) {
		g.kept = append(g.kept, b)
		return
	}
	t.free(b)
}
