package synth

import "gm/internal/models/shapes"

// shape is a model and what a step gives it.
type shape struct {
	*shapes.Transformer
	batch, sequence, tokens int64 // of this GPU, in attention
	context, exchanged      int64 // GPUs that split each sequence, and the experts
}

// tensorOf returns the bytes of this many numbers for each token.
func (s *shape) tensorOf(columns int64) int64 { return half * s.tokens * columns }

// decoder is a model that can be executed.
type decoder struct {
	table     *param // of tokens
	positions *param
	layers    []*layer
	final     *norm
	head      *param    // the table itself where the two are tied
	held      []*tensor // until the last layer is done
	passed    []*tensor // of those what layers are passed
	cos, sin  *tensor   // of the angles of positions
}

// layer is one layer of a decoder: modules by the names of transformers, and the function that runs them.
type layer struct {
	name           string
	norm1, norm2   *norm
	normQ, normK   *norm   // of heads; nil without
	q, k, v, out   *linear // or all three in q
	up, gate, down *linear
	experts        *routed
	latent         *latent
	forward        func(x *tensor) *tensor
	params         []*param
}

// build makes the parameters of a model, and what runs its layers.
func build(m *machine, s *shape, b *builder) *decoder {
	net := &decoder{}
	if b.job.first() {
		net.table = b.param("embed_tokens", s.Vocabulary, s.Hidden)
	}
	if s.Positions > 0 {
		net.positions = b.param("embed_positions", s.Positions, s.Hidden)
	}
	early := s.Family == shapes.OPT // transformers has the last normalization before the layers
	if early {
		net.final = b.norm("final_layer_norm", s.Hidden, true)
	}
	from, to := b.job.layers()
	for i := from; i < to; i++ {
		first := len(b.all)
		l := newLayer(s, b, i)
		l.params = b.all[first:len(b.all):len(b.all)]
		switch s.Family {
		case shapes.OPT:
			l.forward = func(x *tensor) *tensor { return m.optLayer(s, l, x) }
		case shapes.GPT2:
			l.forward = func(x *tensor) *tensor { return m.gptLayer(s, l, x) }
		case shapes.NeoX:
			l.forward = func(x *tensor) *tensor { return m.neoxLayer(s, net, l, x) }
		case shapes.Llama:
			l.forward = func(x *tensor) *tensor { return m.llamaLayer(s, net, l, x) }
		}
		net.layers = append(net.layers, l)
	}
	if !b.job.last() {
		return net
	}
	if !early {
		net.final = b.norm("final_layer_norm", s.Hidden, !s.RMSNorm())
	}
	net.head = net.table
	if !s.Tied() {
		net.head = b.param("lm_head", s.Vocabulary, s.Hidden)
	}
	return net
}

func newLayer(s *shape, b *builder, index int64) *layer {
	switch s.Family {
	case shapes.OPT:
		return newOPTLayer(s, b, index)
	case shapes.GPT2:
		return newGPTLayer(s, b, index)
	case shapes.NeoX:
		return newNeoXLayer(s, b, index)
	}
	return newLlamaLayer(s, b, index)
}
