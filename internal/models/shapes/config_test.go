package shapes

import (
	"strings"
	"testing"
)

// deepSeekV3 is what the configuration of DeepSeek-V3 says of its shape.
const deepSeekV3 = `{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128,
	"num_key_value_heads": 128, "vocab_size": 129280, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3,
	"moe_intermediate_size": 2048, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
	"tie_word_embeddings": false}`

// TestReadConfig holds configurations against the models that are listed.
func TestReadConfig(t *testing.T) {
	for name, text := range map[string]string{
		"deepseek-v3": deepSeekV3,
		"llama-8b": `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
			"num_key_value_heads": 8, "vocab_size": 128256}`,
		"mixtral-8x7b": `{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
			"num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2}`,
		"gpt2-xl": `{"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "n_positions": 1024, "vocab_size": 50257}`,
	} {
		want, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadConfig(strings.NewReader(text), name)
		got.About = want.About
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// Configurations as transformers saves them, as far as they are read.
const (
	qwen2 = `{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
		"num_key_value_heads": 4, "vocab_size": 152064, "hidden_act": "silu", "tie_word_embeddings": false}`
	qwen3 = `{"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
		"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": false}`
	llama = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
		"hidden_act": "silu", "attention_bias": true, "mlp_bias": false}`
	neoX = `{"model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
		"hidden_act": "gelu", "attention_bias": true, "use_parallel_residual": true, "hidden_dropout": 0.0, "rotary_pct": 0.25}`
	opt = `{"model_type": "opt", "hidden_size": 64, "ffn_dim": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
		"max_position_embeddings": 64, "activation_function": "relu", "enable_bias": true, "dropout": 0.1, "layerdrop": 0.0, "word_embed_proj_dim": 64}`
	gpt2 = `{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_inner": null, "vocab_size": 100,
		"activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1, "tie_word_embeddings": true}`
	mixtral = `{"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
		"num_local_experts": 4, "num_experts_per_tok": 2}`
)

// TestParameters counts what models learn, as Hugging Face does: of Qwen2.5-7B and Qwen3-8B, and of a Llama with biases.
func TestParameters(t *testing.T) {
	for text, want := range map[string]int64{
		qwen2: 7615616512, qwen3: 8190735360,
		llama: 2*100*64 + 64 + 2*(4*64*64+4*64+3*64*128+2*64),
	} {
		m, err := ReadConfig(strings.NewReader(text), "c")
		if err != nil || m.Parameters() != want {
			t.Errorf("%s: %d parameters, %v; want %d", text, m.Parameters(), err, want)
		}
	}
}

// TestReadConfigFails changes or removes a key of a configuration that is known.
func TestReadConfigFails(t *testing.T) {
	for _, c := range []struct{ text, from, to, want string }{
		{"", "", "", "c: unexpected end of JSON input"},
		{`{}`, "", "", `c: model_type "" is not known, expected one of llama, `},
		{`{"model_type": "bert"}`, "", "", `c: model_type "bert" is not known, expected one of llama, `},
		{llama, `64`, `-1`, "c: hidden_size is -1, expected 1 to 16777216"},
		{llama, `hidden_size`, `d_model`, "c: hidden_size is missing, which model_type llama has"},
		{llama, `intermediate_size`, `d_ff`, "c: intermediate_size is missing, which model_type llama has"},
		{llama, `"num_hidden_layers": 2`, `"num_hidden_layers": null`, "c: num_hidden_layers is missing, which model_type llama has"},
		{llama, `num_attention_heads`, `heads`, "c: num_attention_heads is missing, which model_type llama has"},
		{llama, `vocab_size`, `vocabulary`, "c: vocab_size is missing, which model_type llama has"},
		{llama, `silu`, `relu`, `c: hidden_act is "relu": model_type llama is only known with "silu" or "swish"`},
		{llama, `"mlp_bias": false`, `"mlp_bias": true`, "c: mlp_bias is true: model_type llama is only known with false"},
		{mixtral, `num_local_experts`, `experts`, "c: num_local_experts is missing, which model_type mixtral has"},
		{mixtral, `"num_experts_per_tok": 2`, `"num_experts_per_tok": 5`, "c: num_experts_per_tok is 5, of 4 experts"},
		{deepSeekV3, `"kv_lora_rank": 512`, `"kv_lora_rank": 0`, "c: kv_lora_rank is 0, expected 1 to"},
		{deepSeekV3, `"q_lora_rank": 1536`, `"q_lora_rank": null`, "c: q_lora_rank is missing, which model_type deepseek_v3 has"},
		{deepSeekV3, `61`, `"many"`, "c: num_hidden_layers: a text, expected a whole number of 64 bits"},
		{neoX, `"attention_bias": true`, `"attention_bias": false`, "c: attention_bias is false: model_type gpt_neox is only known with true"},
		{neoX, `"use_parallel_residual": true`, `"use_parallel_residual": false`, "c: use_parallel_residual is false: model_type gpt_neox is only known with true"},
		{neoX, `"hidden_dropout": 0.0`, `"hidden_dropout": 0.1`, "c: hidden_dropout is 0.1: model_type gpt_neox is only known with 0"},
		{neoX, `"gelu"`, `"gelu_new"`, `c: hidden_act is "gelu_new": model_type gpt_neox is only known with "gelu" or "gelu_fast"`},
		{neoX, `0.25`, `1`, "c: rotary_pct is 1: model_type gpt_neox is only known with 0.25"},
		{opt, `"dropout": 0.1`, `"dropout": 0.0`, "c: dropout is 0: model_type opt is only known with dropout"},
		{opt, `relu`, `gelu`, `c: activation_function is "gelu": model_type opt is only known with "relu"`},
		{opt, `"enable_bias": true`, `"enable_bias": false`, "c: enable_bias is false: model_type opt is only known with true"},
		{opt, `"word_embed_proj_dim": 64`, `"word_embed_proj_dim": 32`, "c: word_embed_proj_dim is 32: model_type opt is only known with 64"},
		{gpt2, `"resid_pdrop": 0.1`, `"resid_pdrop": 0`, "c: resid_pdrop is 0: model_type gpt2 is only known with dropout"},
		{gpt2, `"embd_pdrop": 0.1`, `"embd_pdrop": 0`, "c: embd_pdrop is 0: model_type gpt2 is only known with dropout"},
		{gpt2, `gelu_new`, `relu`, `c: activation_function is "relu": model_type gpt2 is only known with "gelu_new"`},
		{gpt2, `"tie_word_embeddings": true`, `"tie_word_embeddings": false`, "c: tie_word_embeddings is false: model_type gpt2 is only known with true"},
	} {
		if c.from != "" {
			if _, err := ReadConfig(strings.NewReader(c.text), "c"); err != nil {
				t.Errorf("%s: %v", c.text, err)
			}
		}
		_, err := ReadConfig(strings.NewReader(strings.Replace(c.text, c.from, c.to, 1)), "c")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %q", c.to, c.from, err, c.want)
		}
	}
}
