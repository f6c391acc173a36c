package shapes

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// config is a config.json of Hugging Face transformers, as far as it is read: Llama and those like it, GPT-NeoX, OPT and GPT-2.
type config struct {
	Type          string `json:"model_type"`
	Hidden        int64  `json:"hidden_size"`
	FFN           int64  `json:"intermediate_size"`
	Layers        int64  `json:"num_hidden_layers"`
	Heads         int64  `json:"num_attention_heads"`
	Groups        *int64 `json:"num_key_value_heads"`
	Head          *int64 `json:"head_dim"`
	Vocabulary    int64  `json:"vocab_size"`
	Positions     int64  `json:"max_position_embeddings"`
	Tie           *bool  `json:"tie_word_embeddings"`
	AttentionBias bool   `json:"attention_bias"`
	MLPBias       bool   `json:"mlp_bias"`

	Local  int64 `json:"num_local_experts"`
	Active int64 `json:"num_experts_per_tok"`

	Routed       int64  `json:"n_routed_experts"`
	Shared       int64  `json:"n_shared_experts"`
	Dense        int64  `json:"first_k_dense_replace"`
	ExpertFFN    int64  `json:"moe_intermediate_size"`
	QueryColumns *int64 `json:"q_lora_rank"`
	KeyColumns   int64  `json:"kv_lora_rank"`
	Plain        int64  `json:"qk_nope_head_dim"`
	Turned       int64  `json:"qk_rope_head_dim"`
	Values       int64  `json:"v_head_dim"`

	FFNOfOPT    int64    `json:"ffn_dim"`
	Projected   *int64   `json:"word_embed_proj_dim"`
	NormAfter   *bool    `json:"do_layer_norm_before"`
	Rotated     *float64 `json:"rotary_pct"`
	Width       int64    `json:"n_embd"`
	GPTLayers   int64    `json:"n_layer"`
	GPTHeads    int64    `json:"n_head"`
	GPTPosition int64    `json:"n_positions"`
	Inner       *int64   `json:"n_inner"`
}

// Bounds of what a configuration may say: far beyond any model.
const (
	mostConfig       = 1 << 20 // bytes of a file
	mostOfConfig     = 1 << 24
	mostLayersConfig = 1 << 14
)

// offsetOfOPT is how many rows the table of positions of OPT has beside those of positions.
const offsetOfOPT = 2

// ReadConfig reads the shape of a model from its config.json, as Hugging Face transformers writes it.
func ReadConfig(r io.Reader, name string) (Transformer, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostConfig))
	if err != nil {
		return Transformer{}, fmt.Errorf("read %s: %w", name, err)
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return Transformer{}, fmt.Errorf("%s: %w", name, err)
	}
	t, err := c.transformer()
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	t.Name, t.About = name, "read from its configuration"
	return t, nil
}

func (c *config) transformer() (Transformer, error) {
	t := Transformer{Layers: c.Layers, Hidden: c.Hidden, FFN: c.FFN, Heads: c.Heads, Groups: c.Heads, Vocabulary: c.Vocabulary}
	if c.Groups != nil {
		t.Groups = *c.Groups
	}
	if c.Head != nil {
		t.Head = *c.Head
	}
	if c.AttentionBias || c.MLPBias {
		return t, fmt.Errorf("biases of attention or of the feed-forward part are not known for a %s", c.Type)
	}
	t.Family, t.Tie = Llama, c.Tie != nil && *c.Tie
	switch c.Type {
	case "llama", "mistral":
	case "mixtral":
		t.Experts = Experts{Count: c.Local, Active: c.Active, FFN: c.FFN}
	case "deepseek_v3":
		return t, c.deepSeek(&t)
	case "gpt_neox":
		t.Family = NeoX
		if t.Tie || c.Rotated != nil && *c.Rotated*rotaryShare != 1 {
			return t, fmt.Errorf("only a gpt_neox with rotary_pct 0.25 and a classifier of its own is known")
		}
	case "opt":
		t.Family, t.FFN, t.Positions = OPT, c.FFNOfOPT, c.Positions+offsetOfOPT
		if c.Projected != nil && *c.Projected != c.Hidden || c.NormAfter != nil && !*c.NormAfter || c.Tie != nil && !*c.Tie {
			return t, fmt.Errorf("only an opt with a word_embed_proj_dim of its hidden_size, do_layer_norm_before and a tied classifier is known")
		}
	case "gpt2":
		t = Transformer{
			Layers: c.GPTLayers, Hidden: c.Width, FFN: 4 * c.Width, Heads: c.GPTHeads, Groups: c.GPTHeads, Vocabulary: c.Vocabulary,
			Positions: c.GPTPosition, Family: GPT2,
		}
		if c.Inner != nil {
			t.FFN = *c.Inner
		}
	default:
		return t, fmt.Errorf("model_type %q is not known, expected one of %s", c.Type,
			strings.Join([]string{"llama", "mistral", "mixtral", "deepseek_v3", "gpt_neox", "opt", "gpt2"}, ", "))
	}
	return t, nil
}

func (c *config) deepSeek(t *Transformer) error {
	if c.QueryColumns == nil {
		return fmt.Errorf("a deepseek_v3 without q_lora_rank is not known")
	}
	t.Head = 0
	t.Experts = Experts{Count: c.Routed, Active: c.Active, FFN: c.ExpertFFN, Shared: c.Shared, Dense: c.Dense}
	t.Latent = Latent{Queries: *c.QueryColumns, Keys: c.KeyColumns, Plain: c.Plain, Turned: c.Turned, Values: c.Values}
	for _, n := range []int64{t.Latent.Queries, t.Latent.Keys, t.Latent.Plain, t.Latent.Turned, t.Latent.Values} {
		if n < 1 || n > mostOfConfig {
			return fmt.Errorf("q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim are %+v: each is at least 1", t.Latent)
		}
	}
	return nil
}

// check refuses what no model has.
func (t *Transformer) check() error {
	for name, n := range map[string]int64{
		"width": t.Hidden, "feed-forward width": t.FFN, "number of heads": t.Heads, "number of key and value heads": t.Groups, "vocabulary": t.Vocabulary,
	} {
		if n < 1 || n > mostOfConfig {
			return fmt.Errorf("a %s of %d", name, n)
		}
	}
	e := t.Experts
	switch {
	case t.Layers < 1 || t.Layers > mostLayersConfig:
		return fmt.Errorf("%d layers", t.Layers)
	case t.Head < 0 || t.Head > mostOfConfig || t.Positions < 0 || t.Positions > mostOfConfig:
		return fmt.Errorf("heads of %d columns, %d positions", t.Head, t.Positions)
	case e != Experts{} && (e.Count < 1 || e.Count > mostOfConfig || e.Active < 1 || e.Active > e.Count || e.FFN < 1 || e.FFN > mostOfConfig ||
		e.Shared < 0 || e.Shared > mostLayersConfig || e.Dense < 0):
		return fmt.Errorf("experts %+v", e)
	}
	return nil
}
