package shapes

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"gm/internal/jsonvalue"
)

// offsetOfOPT is how many rows the table of positions of OPT has beside those of positions.
const offsetOfOPT = 2

// configured makes the shapes of the model types of Hugging Face transformers that are known.
var configured = []struct {
	kind string
	make func(c *config) Transformer
}{
	{"llama", (*config).llama}, {"mistral", (*config).llama}, {"mixtral", (*config).mixtral}, {"deepseek_v3", (*config).deepSeek},
	{"qwen2", (*config).qwen2}, {"qwen3", (*config).qwen3}, {"gpt_neox", (*config).neoX}, {"opt", (*config).opt}, {"gpt2", (*config).gpt2},
}

// ReadConfig reads the shape of a model from its config.json, as Hugging Face transformers writes it. Errors name the key that is missing, or whose
// value is not known.
func ReadConfig(r io.Reader, name string) (Transformer, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostConfig))
	if err != nil {
		return Transformer{}, fmt.Errorf("read %s: %w", name, err)
	}
	var c config
	if err := jsonvalue.Explain(json.Unmarshal(text, &c.keys)); err != nil {
		return Transformer{}, fmt.Errorf("%s: %w", name, err)
	}
	t, err := c.transformer()
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	t.Name, t.About = name, "read from its configuration"
	return t, nil
}

func (c *config) transformer() (Transformer, error) {
	c.has("model_type", &c.kind)
	var kinds []string
	for _, known := range configured {
		if known.kind == c.kind && c.err == nil {
			t := known.make(c)
			return t, c.err
		}
		kinds = append(kinds, known.kind)
	}
	if c.err != nil {
		return Transformer{}, c.err
	}
	return Transformer{}, fmt.Errorf("model_type %q is not known, expected one of %s", c.kind, strings.Join(kinds, ", "))
}

// decoder reads what most types call by the same keys.
func (c *config) decoder(family Family) Transformer {
	t := Transformer{
		Family: family, Hidden: c.number("hidden_size"), Layers: c.layers("num_hidden_layers"), Heads: c.number("num_attention_heads"),
		Vocabulary: c.number("vocab_size"),
	}
	t.Groups = c.numberOr("num_key_value_heads", t.Heads)
	return t
}

func (c *config) llama() Transformer {
	t := c.decoder(Llama)
	t.FFN = c.number("intermediate_size")
	t.Head = c.numberOr("head_dim", 0)
	t.Tie = c.flag("tie_word_embeddings")
	biased := c.flag("attention_bias")
	t.QKVBias, t.OutBias = biased, biased
	c.only("hidden_act", "silu", "swish")
	c.only("mlp_bias", false)
	return t
}

// qwen2 is a Llama whose queries, keys and values have a bias, whatever the configuration says.
func (c *config) qwen2() Transformer {
	t := c.llama()
	t.QKVBias, t.OutBias = true, false
	return t
}

func (c *config) qwen3() Transformer {
	t := c.llama()
	t.HeadNorms = true
	return t
}

func (c *config) mixtral() Transformer {
	t := c.llama()
	c.only("attention_bias", false)
	t.Experts = Experts{Count: c.number("num_local_experts"), Active: c.number("num_experts_per_tok"), FFN: t.FFN}
	c.active(&t.Experts)
	return t
}

func (c *config) deepSeek() Transformer {
	t := c.llama()
	t.Head = 0
	c.only("attention_bias", false)
	t.Experts = Experts{
		Count: c.number("n_routed_experts"), Active: c.number("num_experts_per_tok"), FFN: c.number("moe_intermediate_size"),
		Shared: c.countOr("n_shared_experts", 0), Dense: c.countOr("first_k_dense_replace", 0),
	}
	c.active(&t.Experts)
	t.Latent = Latent{
		Queries: c.number("q_lora_rank"), Keys: c.number("kv_lora_rank"), Plain: c.number("qk_nope_head_dim"), Turned: c.number("qk_rope_head_dim"),
		Values: c.number("v_head_dim"),
	}
	return t
}

// active refuses tokens that are sent to more experts than there are.
func (c *config) active(e *Experts) {
	if e.Active > e.Count {
		c.fail("num_experts_per_tok is %d, of %d experts", e.Active, e.Count)
	}
}

func (c *config) neoX() Transformer {
	t := c.decoder(NeoX)
	t.FFN = c.number("intermediate_size")
	t.FastGELU = c.only("hidden_act", "gelu", "gelu_fast") == "gelu_fast"
	c.only("attention_bias", true)
	c.only("use_parallel_residual", true)
	c.only("hidden_dropout", 0.0)
	c.only("hidden_dropout_prob", 0.0)
	c.only("rotary_pct", 1.0/rotaryShare)
	c.only("tie_word_embeddings", false)
	return t
}

func (c *config) opt() Transformer {
	t := c.decoder(OPT)
	t.FFN = c.number("ffn_dim")
	t.Positions = c.number("max_position_embeddings") + offsetOfOPT
	c.only("word_embed_proj_dim", float64(t.Hidden))
	c.only("activation_function", "relu")
	for _, key := range []string{"do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine", "tie_word_embeddings"} {
		c.only(key, true)
	}
	c.only("_remove_final_layer_norm", false)
	c.only("layerdrop", 0.0)
	c.positive("dropout")
	return t
}

func (c *config) gpt2() Transformer {
	t := Transformer{
		Family: GPT2, Hidden: c.number("n_embd"), Layers: c.layers("n_layer"), Heads: c.number("n_head"), Vocabulary: c.number("vocab_size"),
		Positions: c.number("n_positions"),
	}
	t.Groups = t.Heads
	t.FFN = c.numberOr("n_inner", 4*t.Hidden)
	c.only("activation_function", "gelu_new")
	c.only("tie_word_embeddings", true)
	c.only("add_cross_attention", false)
	c.positive("resid_pdrop")
	c.positive("embd_pdrop")
	return t
}

// Bounds of what a configuration may say: far beyond any model.
const (
	mostConfig       = 1 << 20 // bytes of a file
	mostOfConfig     = 1 << 24
	mostLayersConfig = 1 << 14
)

// config is a config.json by its keys. Of what is wrong with it, it keeps the first.
type config struct {
	keys map[string]json.RawMessage
	kind string
	err  error
}

func (c *config) fail(format string, values ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, values...)
	}
}

// has decodes the value of a key, and reports whether there is one. null is none.
func (c *config) has(key string, value any) bool {
	text, ok := c.keys[key]
	if !ok || string(text) == "null" {
		return false
	}
	if err := jsonvalue.Explain(json.Unmarshal(text, value)); err != nil {
		c.fail("%s: %w", key, err)
		return false
	}
	return true
}

// number returns a number that is at least 1 and has to be there.
func (c *config) number(key string) int64 { return c.within(key, mostOfConfig) }

func (c *config) layers(key string) int64 { return c.within(key, mostLayersConfig) }

func (c *config) within(key string, most int64) int64 {
	n := c.between(key, 0, 1, most)
	if n == 0 {
		c.fail("%s is missing, which model_type %s has", key, c.kind)
	}
	return n
}

// numberOr returns a number that is at least 1, or another if it is not there; countOr one that may be 0.
func (c *config) numberOr(key string, otherwise int64) int64 {
	return c.between(key, otherwise, 1, mostOfConfig)
}
func (c *config) countOr(key string, otherwise int64) int64 {
	return c.between(key, otherwise, 0, mostOfConfig)
}

func (c *config) between(key string, otherwise, least, most int64) int64 {
	n := int64(0)
	if !c.has(key, &n) {
		return otherwise
	}
	if n < least || n > most {
		c.fail("%s is %d, expected %d to %d", key, n, least, most)
	}
	return n
}

func (c *config) flag(key string) (value bool) {
	c.has(key, &value)
	return value
}

// only refuses a value that is none of those whose memory is known, and returns it; nil if there is none.
func (c *config) only(key string, known ...any) (value any) {
	if c.has(key, &value) && !slices.Contains(known, value) {
		var texts []string
		for _, k := range known {
			texts = append(texts, jsonText(k))
		}
		c.fail("%s is %s: model_type %s is only known with %s", key, jsonText(value), c.kind, strings.Join(texts, " or "))
	}
	return value
}

// positive refuses a part that is dropped out of 0: then there is no mask.
func (c *config) positive(key string) {
	var part float64
	if c.has(key, &part) && part <= 0 {
		c.fail("%s is %v: model_type %s is only known with dropout", key, part, c.kind)
	}
}

func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
