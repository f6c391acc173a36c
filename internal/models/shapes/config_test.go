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

func TestReadConfigFails(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "c: unexpected end of JSON input",
		`{"model_type": "bert"}`: `c: model_type "bert" is not known, expected one of llama, `,
		`{"model_type": "llama", "hidden_size": -1, "intermediate_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 1}`: "c: a width of -1",
		strings.Replace(deepSeekV3, `"kv_lora_rank": 512`, `"kv_lora_rank": 0`, 1):                                                              "each is at least 1",
		strings.Replace(deepSeekV3, `61`, `"many"`, 1):                                                                                          "cannot unmarshal",
	} {
		if _, err := ReadConfig(strings.NewReader(text), "c"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
