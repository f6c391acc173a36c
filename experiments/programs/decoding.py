"""Decoding with transformers, whose cache grows by a token at a time, by concatenation."""

import random

import torch


def llama(layers, width):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=width, intermediate_size=width * 11 // 4, num_hidden_layers=layers, num_attention_heads=width // 128,
        num_key_value_heads=width // 128, vocab_size=32000)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.generation_config.pad_token_id = 0
    return model


def decode(model, rng, batches, longest, tokens):
    prompt = torch.randint(1, 32000, (rng.choice(batches), rng.randint(longest // 8, longest)), device="cuda")
    return model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)


def generate(steps, tokens=48):
    model = llama(16, 4096).eval()
    for step in range(steps):
        with torch.no_grad():
            out = decode(model, random.Random(step), (4, 8, 16, 32, 48), 1024, int(tokens))
        yield out.sum()


def ppo(steps):
    """Reinforcement learning: texts are generated, then the model is trained on them."""
    model = llama(12, 2048)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for step in range(steps):
        rng = random.Random(step)
        model.eval()
        with torch.no_grad():
            text = decode(model, rng, (8, 16, 24), 512, 16 + rng.randrange(32))
        model.train()
        loss = model(input_ids=text, labels=text, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss
