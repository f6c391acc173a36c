"""Small models of transformers, where that is installed, on a real PyTorch: texts of all lengths, pictures, batches that vary."""

import contextlib
import random

import torch

from cpu import Hooked
from real import main

try:
    import transformers
except ImportError:
    transformers = None

SMALL = dict(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128, vocab_size=128, d_model=64, n_embd=64, n_layer=2,
    n_head=4, encoder_layers=2, decoder_layers=2, num_layers=2, num_heads=4, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
    decoder_ffn_dim=128, d_ff=128, d_kv=16, max_position_embeddings=128, n_positions=128, head_dim=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    use_cache=False, num_local_experts=4, num_experts=4, image_size=32, patch_size=8, num_labels=5, state_size=8, conv_kernel=4, time_step_rank=4,
    depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 64, 64], num_experts_per_tok=2, decoder_start_token_id=1)
CAUSAL, MASKED, PAIRS, PICTURES = "ForCausalLM", "ForMaskedLM", "ForSeq2SeqLM", "ForImageClassification"
MODELS = {
    CAUSAL: ("llama", "mixtral", "qwen3_moe", "gemma2", "gpt2", "bloom", "falcon", "opt", "mamba", "jamba", "recurrent_gemma"),
    MASKED: ("bert", "albert", "deberta-v2", "longformer", "big_bird", "xlm"),
    PAIRS: ("bart", "led", "m2m_100"),
    PICTURES: ("vit", "beit", "resnet", "mobilevit", "cvt", "segformer", "poolformer"),
}


def build(kind, name):
    config = transformers.AutoConfig.for_model(name)
    for key, value in SMALL.items():
        with contextlib.suppress(Exception):  # some follow from others, or are of another type
            if hasattr(config, key):
                setattr(config, key, value)
    return getattr(transformers, "AutoModel" + kind).from_config(config).train()


def batch(kind, draw, size):
    ids = torch.randint(3, 120, (size, 16 * draw.randint(1, 4)))
    if kind == PICTURES:
        return {"pixel_values": torch.rand(size, 3, 32, 32), "labels": torch.randint(0, 5, (size,))}
    return {"input_ids": ids, "labels": torch.randint(3, 120, (size, draw.randint(4, 20))) if kind == PAIRS else ids}


def losses(kind, name, steps=9):
    """Returns the losses, and sums of the parameters at the end."""
    torch.manual_seed(0)
    model, out, draw = build(kind, name), [], random.Random(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(steps):
        torch.manual_seed(step)
        loss = model(**batch(kind, draw, 3 if step % 4 == 0 else 2)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        out.append(float(loss.detach()))
    return out, [float(p.detach().double().sum()) for p in model.parameters()]


def test_models():
    """The losses and parameters of all models are the same to the bit."""
    if transformers is None:
        return
    for kind, names in MODELS.items():
        for name in names:
            random.seed(0)
            want = losses(kind, name)
            hooked = Hooked("remake", smallest=512)
            random.seed(0)
            got = losses(kind, name)
            hooked.remove()
            assert str(got) == str(want), name
            assert hooked.lanes.moved > 0, name


if __name__ == "__main__":
    main(globals())
