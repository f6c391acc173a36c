package synth

// Model is the shape of a decoder.
type Model struct {
	Name, About string
	Layers      int64
	Hidden      int64
	FFN         int64 // width of the feed-forward part
	Heads       int64
	Groups      int64 // of heads that share keys and values: Heads if none do
	Vocabulary  int64
	Positions   int64 // rows of the table of positions, where there is one
	family      family
}

// family is the code that a model runs: operators, their order, and names.
type family int8

const (
	familyOPT family = iota
	familyGPT2
	familyNeoX
	familyLlama
)

// Models lists the models: those of MEMO's table 2, those that GMLake is evaluated on (its table 2), and those of gm's recordings.
func Models() []Model {
	gpt := func(name string, layers, hidden, heads int64) Model {
		return Model{name, "GPT of MEMO's table 2, with the operators of GPT-2", layers, hidden, 4 * hidden, heads, heads, 50257, 2048, familyGPT2}
	}
	const lake = " of GMLake's table 2"
	return []Model{
		gpt("gpt-7b", 32, 4096, 32),
		gpt("gpt-13b", 40, 5120, 40),
		gpt("gpt-30b", 48, 7168, 56),
		gpt("gpt-65b", 80, 8192, 64),
		{"opt-1.3b", "OPT" + lake, 24, 2048, 8192, 32, 32, 50272, 2050, familyOPT},
		{"opt-13b", "OPT" + lake, 40, 5120, 20480, 40, 40, 50272, 2050, familyOPT},
		{"gpt2-medium", "GPT-2 of 355 million parameters", 24, 1024, 4096, 16, 16, 50257, 1024, familyGPT2},
		{"gpt2-xl", "GPT-2" + lake, 48, 1600, 6400, 25, 25, 50257, 1024, familyGPT2},
		{"vicuna-13b", "Vicuna" + lake + ", a Llama", 40, 5120, 13824, 40, 40, 32000, 0, familyLlama},
		{"glm-10b", "GLM" + lake + ", with the operators of GPT-2", 48, 4096, 16384, 64, 64, 50304, 1025, familyGPT2},
		{"gpt-neox-20b", "GPT-NeoX" + lake, 44, 6144, 24576, 64, 64, 50432, 0, familyNeoX},
		{"llama-7b", "Llama of 6.7 billion parameters", 32, 4096, 11008, 32, 32, 32000, 0, familyLlama},
		{"llama-8b", "Llama 3 of 8.0 billion parameters", 32, 4096, 14336, 32, 8, 128256, 0, familyLlama},
	}
}

// Parameters returns how many numbers the model has.
func (m Model) Parameters() int64 {
	b := &builder{}
	build(&machine{}, &shape{Model: &m}, b)
	n := int64(0)
	for _, p := range b.all {
		n += p.rows * p.columns
	}
	return n
}

// shape is a model and what a step gives it.
type shape struct {
	*Model
	batch, sequence, tokens int64
}

// keys returns the columns of the keys, and of the values.
func (s *shape) keys() int64 { return s.Hidden / s.Heads * s.Groups }

// turned returns the columns of a head that are turned by the angles of positions.
func (s *shape) turned() int64 {
	switch s.family {
	case familyNeoX:
		return s.Hidden / s.Heads / rotaryShare
	case familyLlama:
		return s.Hidden / s.Heads
	}
	return 0
}

// tensorOf returns the bytes of so many numbers for each token.
func (s *shape) tensorOf(columns int64) int64 { return half * s.tokens * columns }

// decoder is a model as it is executed.
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
	q, k, v, out   *linear // or all three in q
	up, gate, down *linear
	forward        func(x *tensor) *tensor
	params         []*param
}

// build makes the parameters of a model, and what runs its layers.
func build(m *machine, s *shape, b *builder) *decoder {
	net := &decoder{table: b.param("embed_tokens", s.Vocabulary, s.Hidden)}
	if s.family == familyOPT || s.family == familyGPT2 {
		net.positions = b.param("embed_positions", s.Positions, s.Hidden)
	}
	early := s.family == familyOPT // transformers has the last normalization before the layers
	if early {
		net.final = b.norm("final_layer_norm", s.Hidden, true)
	}
	for i := range s.Layers {
		first := len(b.all)
		l := newLayer(s, b, i)
		l.params = b.all[first:len(b.all):len(b.all)]
		switch s.family {
		case familyOPT:
			l.forward = func(x *tensor) *tensor { return m.optLayer(s, l, x) }
		case familyGPT2:
			l.forward = func(x *tensor) *tensor { return m.gptLayer(s, l, x) }
		case familyNeoX:
			l.forward = func(x *tensor) *tensor { return m.neoxLayer(s, net, l, x) }
		case familyLlama:
			l.forward = func(x *tensor) *tensor { return m.llamaLayer(s, net, l, x) }
		}
		net.layers = append(net.layers, l)
	}
	if !early {
		net.final = b.norm("final_layer_norm", s.Hidden, s.family != familyLlama)
	}
	net.head = net.table
	if s.family == familyNeoX || s.family == familyLlama {
		net.head = b.param("lm_head", s.Vocabulary, s.Hidden)
	}
	return net
}

func newLayer(s *shape, b *builder, index int64) *layer {
	switch s.family {
	case familyOPT:
		return newOPTLayer(s, b, index)
	case familyGPT2:
		return newGPTLayer(s, b, index)
	case familyNeoX:
		return newNeoXLayer(s, b, index)
	}
	return newLlamaLayer(s, b, index)
}
