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
	Tie         bool  // the classifier is the table of tokens, in a Llama
	Head        int64 // columns of a head: Hidden / Heads if 0
	QKVBias     bool  // queries, keys and values add a bias, in a Llama
	OutBias     bool  // so does the output of attention
	HeadNorms   bool  // each head of queries and of keys is normalized, in a Llama
	FastGELU    bool  // GELU by tanh, operator by operator, in a GPT-NeoX
	Experts     Experts
	Latent      Latent
}

// Experts replace the feed-forward part of layers, if there are any: a router sends each token to some of them.
type Experts struct {
	Count  int64
	Active int64 // that a token is sent to
	FFN    int64 // width of each
	Shared int64 // that all tokens are sent to, beside
	Dense  int64 // layers, the first ones, without experts
}

// Latent is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), in columns: of what queries, and keys and values, are
// compressed to, and of a head's parts. Without it all are 0.
type Latent struct{ Queries, Keys, Plain, Turned, Values int64 }

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
	const lake = " of GMLake's table 2"
	all := []Transformer{
		memo("gpt-7b", 32, 4096, 32),
		memo("gpt-13b", 40, 5120, 40),
		memo("gpt-30b", 48, 7168, 56),
		memo("gpt-65b", 80, 8192, 64),
		dense("opt-1.3b", "OPT"+lake, 24, 2048, 8192, 32, 32, 50272, 2050, OPT),
		dense("opt-13b", "OPT"+lake, 40, 5120, 20480, 40, 40, 50272, 2050, OPT),
		dense("gpt2-medium", "GPT-2 of 355 million parameters", 24, 1024, 4096, 16, 16, 50257, 1024, GPT2),
		dense("gpt2-xl", "GPT-2"+lake, 48, 1600, 6400, 25, 25, 50257, 1024, GPT2),
		dense("vicuna-13b", "Vicuna"+lake+", a Llama", 40, 5120, 13824, 40, 40, 32000, 0, Llama),
		dense("glm-10b", "GLM"+lake+", with the operators of GPT-2", 48, 4096, 16384, 64, 64, 50304, 1025, GPT2),
		dense("gpt-neox-20b", "GPT-NeoX"+lake, 44, 6144, 24576, 64, 64, 50432, 0, NeoX),
		dense("llama-7b", "Llama of 6.7 billion parameters", 32, 4096, 11008, 32, 32, 32000, 0, Llama),
		dense("llama-8b", "Llama 3 of 8.0 billion parameters", 32, 4096, 14336, 32, 8, 128256, 0, Llama),
		dense("llama-65b", "Llama of 65.3 billion parameters", 80, 8192, 22016, 64, 64, 32000, 0, Llama),
		dense("llama-70b", "Llama 3 of 70.6 billion parameters", 80, 8192, 28672, 64, 8, 128256, 0, Llama),
		dense("llama-405b", "Llama 3.1 of 405.9 billion parameters", 126, 16384, 53248, 128, 8, 128256, 0, Llama),
		dense("mixtral-8x7b", "Mixtral of 46.7 billion parameters", 32, 4096, 14336, 32, 8, 32000, 0, Llama),
		dense("mixtral-8x22b", "Mixtral of 140.6 billion parameters", 56, 6144, 16384, 48, 8, 32000, 0, Llama),
		dense("deepseek-v3", "DeepSeek-V3 of 671.0 billion parameters, without its extra layer", 61, 7168, 18432, 128, 128, 129280, 0, Llama),
	}
	for i := range all {
		t := &all[i]
		switch t.Name {
		case "mixtral-8x7b", "mixtral-8x22b":
			t.Experts = Experts{Count: 8, Active: 2, FFN: t.FFN}
		case "deepseek-v3":
			t.Experts = Experts{Count: 256, Active: 8, FFN: 2048, Shared: 1, Dense: 3}
			t.Latent = Latent{Queries: 1536, Keys: 512, Plain: 128, Turned: 64, Values: 128}
		}
	}
	return all
}

func memo(name string, layers, hidden, heads int64) Transformer {
	return dense(name, "GPT of MEMO's table 2, with the operators of GPT-2", layers, hidden, 4*hidden, heads, heads, 50257, 2048, GPT2)
}

func dense(name, about string, layers, hidden, ffn, heads, groups, vocabulary, positions int64, family Family) Transformer {
	return Transformer{
		Name: name, About: about, Layers: layers, Hidden: hidden, FFN: ffn, Heads: heads, Groups: groups, Vocabulary: vocabulary,
		Positions: positions, Family: family,
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
func (t *Transformer) Tied() bool { return t.Family == OPT || t.Family == GPT2 || t.Tie }

// Turned returns the columns of a head that rotary embedding turns by the angles of positions; 0 without it.
func (t *Transformer) Turned() int64 {
	switch t.Family {
	case NeoX:
		return t.HeadSize() / rotaryShare
	case Llama:
		if t.Latent.Turned > 0 {
			return t.Latent.Turned
		}
		return t.HeadSize()
	}
	return 0
}

// HeadSize returns the columns of a head.
func (t *Transformer) HeadSize() int64 {
	if t.Head > 0 {
		return t.Head
	}
	return t.Hidden / t.Heads
}

// Queries returns the columns of the queries.
func (t *Transformer) Queries() int64 { return t.HeadSize() * t.Heads }

// Keys returns the columns of the keys, and of the values.
func (t *Transformer) Keys() int64 { return t.HeadSize() * t.Groups }
