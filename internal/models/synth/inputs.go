package synth

import "gm/internal/models/shapes"

// inputs runs what comes before the first layer.
func (t *trainer) inputs() *tensor {
	s, net := &t.shape, t.net
	switch s.Family {
	case shapes.OPT:
		return t.optInputs(s, net)
	case shapes.GPT2:
		return t.gptInputs(s, net)
	}
	return t.rotaryInputs(s, net, s.Turned())
}

// embed embeds the tokens. Where layers are run again and the table is frozen, the result is made to need a gradient, without which
// nothing would be run again. It and its gradient stay until the next step's graph replaces this one's.
func (t *trainer) embed() *tensor {
	t.in("tokens")
	words := t.scatterTokens(t.lookup(t.net.table, t.ids, t.shape.tokens))
	if t.job.Strategy.LoRA && t.job.Strategy.Recompute {
		t.leaves = append(t.leaves, leafOf(words))
		t.words = append(t.words, words.share())
	}
	return words
}

// places counts the positions of a sequence.
func (t *trainer) places() *tensor {
	counted := t.alloc(indexBytes*t.shape.sequence, temporary)
	places := t.alloc(indexBytes*t.shape.sequence, activation)
	t.drop(counted)
	return places
}

// optInputs embeds tokens and positions, which it counts from a mask.
func (t *trainer) optInputs(s *shape, net *decoder) *tensor {
	index := indexBytes * s.tokens
	words := t.embed()
	mask := t.alloc(half*s.tokens, activation)
	padded := t.alloc(half*s.tokens, temporary)
	ones := t.alloc(half*s.tokens, temporary)
	sums := t.alloc(half*s.tokens, temporary)
	t.drop(ones)
	causal := t.alloc(index, activation)
	t.drop(sums, padded)
	flags := t.alloc(s.tokens, temporary)
	count := t.alloc(indexBytes, temporary)
	t.briefly(index)
	verdict := t.alloc(1, temporary)
	t.drop(count, verdict, flags)
	places := t.alloc(index, activation)
	positions := t.lookup(net.positions, places, s.tokens)
	t.drop(places)
	x := t.add(words, positions)
	net.passed = []*tensor{causal}
	net.held = append(net.held, mask, words, causal, positions)
	return x
}

// gptInputs embeds tokens and positions, and drops out.
func (t *trainer) gptInputs(s *shape, net *decoder) *tensor {
	words := t.embed()
	places := t.places()
	positions := t.lookup(net.positions, places, s.sequence)
	t.drop(places)
	sum := t.add(words, positions)
	t.mask(s)
	x := t.dropout(sum)
	t.drop(sum)
	net.held = append(net.held, words, positions)
	return x
}

// rotaryInputs embeds tokens, and makes the angles of positions for this many columns of a head.
func (t *trainer) rotaryInputs(s *shape, net *decoder, columns int64) *tensor {
	var x *tensor
	if t.job.first() {
		x = t.embed()
	} else {
		x = t.micro.received.share()
		t.micro.entry = leafOf(x)
	}
	places := t.places()
	t.mask(s)
	t.in("rotary")
	indices := t.alloc(statisticBytes*s.sequence, temporary)
	angles := t.alloc(statisticBytes*s.sequence*columns/2, temporary)
	t.warmUp(false)
	both := t.alloc(statisticBytes*s.sequence*columns, temporary)
	var scaled []*tensor
	for range 2 {
		plain := t.alloc(both.size, temporary)
		scaled = append(scaled, t.alloc(both.size, temporary))
		t.drop(plain)
	}
	net.cos, net.sin = t.alloc(half*s.sequence*columns, activation), t.alloc(half*s.sequence*columns, activation)
	t.drop(indices, angles, both)
	t.drop(scaled...)
	net.passed = []*tensor{places, net.cos, net.sin}
	net.held = append(net.held, net.passed...)
	return x
}
