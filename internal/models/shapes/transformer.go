// Package shapes describes transformers: their dimensions, what their layers are made of, and how many parameters and how much arithmetic that
// is. Traces (package synth), graphs of steps (graphs) and layout problems (layouts) are made from these descriptions. It also reads the
// specs that name a model and what it is given, such as gpt-7b,seq=64Ki,tp=4.
package shapes

import (
	"fmt"
	"strings"
)

// Transformer is the shape of a decoder.
type Transformer struct {
	Name, About string
	Layers      int64
	Hidden      int64 // width of the model
	FFN         int64 // width of the feed-forward part
	Heads       int64
	Groups      int64 // of heads that share keys and values: Heads if none do
	Vocabulary  int64
	Positions   int64 // rows of the table of positions, where there is one
	Family      Family
}

// Family is the code that a model runs: its operators, their order, and what they learn.
type Family int8

// The families, by the models of Hugging Face transformers.
const (
	OPT   Family = iota // LayerNorm, ReLU, a table of positions, dropout
	GPT2                // LayerNorm, GELU by tanh, a table of positions, dropout
	NeoX                // LayerNorm, GELU, rotary embedding, attention and feed-forward part side by side
	Llama               // RMSNorm, SwiGLU, rotary embedding
)

// rotaryShare is the part of a head that GPT-NeoX turns: 1 / rotaryShare.
const rotaryShare = 4

// Transformers lists the models: those of MEMO's table 2, those that GMLake is evaluated on (its table 2), and those of gm's recordings.
func Transformers() []Transformer {
	gpt := func(name string, layers, hidden, heads int64) Transformer {
		return Transformer{name, "GPT of MEMO's table 2, with the operators of GPT-2", layers, hidden, 4 * hidden, heads, heads, 50257, 2048, GPT2}
	}
	const lake = " of GMLake's table 2"
	return []Transformer{
		gpt("gpt-7b", 32, 4096, 32),
		gpt("gpt-13b", 40, 5120, 40),
		gpt("gpt-30b", 48, 7168, 56),
		gpt("gpt-65b", 80, 8192, 64),
		{"opt-1.3b", "OPT" + lake, 24, 2048, 8192, 32, 32, 50272, 2050, OPT},
		{"opt-13b", "OPT" + lake, 40, 5120, 20480, 40, 40, 50272, 2050, OPT},
		{"gpt2-medium", "GPT-2 of 355 million parameters", 24, 1024, 4096, 16, 16, 50257, 1024, GPT2},
		{"gpt2-xl", "GPT-2" + lake, 48, 1600, 6400, 25, 25, 50257, 1024, GPT2},
		{"vicuna-13b", "Vicuna" + lake + ", a Llama", 40, 5120, 13824, 40, 40, 32000, 0, Llama},
		{"glm-10b", "GLM" + lake + ", with the operators of GPT-2", 48, 4096, 16384, 64, 64, 50304, 1025, GPT2},
		{"gpt-neox-20b", "GPT-NeoX" + lake, 44, 6144, 24576, 64, 64, 50432, 0, NeoX},
		{"llama-7b", "Llama of 6.7 billion parameters", 32, 4096, 11008, 32, 32, 32000, 0, Llama},
		{"llama-8b", "Llama 3 of 8.0 billion parameters", 32, 4096, 14336, 32, 8, 128256, 0, Llama},
	}
}

// Lookup returns the model of a name.
func Lookup(name string) (Transformer, error) {
	var names []string
	for _, t := range Transformers() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Transformer{}, fmt.Errorf("unknown, expected one of %s", strings.Join(names, ", "))
}

// Memo lists the models of MEMO's table 2.
func Memo() []Transformer { return Transformers()[:4] }

// Gated reports whether the feed-forward part multiplies two projections (SwiGLU).
func (t *Transformer) Gated() bool { return t.Family == Llama }

// RMSNorm reports whether layers normalize without mean and shift.
func (t *Transformer) RMSNorm() bool { return t.Family == Llama }

// Biased reports whether linear layers of a layer add a bias.
func (t *Transformer) Biased() bool { return t.Family != Llama }

// Tied reports whether the classifier is the table of tokens.
func (t *Transformer) Tied() bool { return t.Family == OPT || t.Family == GPT2 }

// Turned returns the columns of a head that rotary embedding turns by the angles of positions; 0 without it.
func (t *Transformer) Turned() int64 {
	switch t.Family {
	case NeoX:
		return t.HeadSize() / rotaryShare
	case Llama:
		return t.HeadSize()
	}
	return 0
}

// HeadSize returns the columns of a head.
func (t *Transformer) HeadSize() int64 { return t.Hidden / t.Heads }

// Keys returns the columns of the keys, and of the values.
func (t *Transformer) Keys() int64 { return t.HeadSize() * t.Groups }
