"""Language models of transformers, trained on texts whose length varies from batch to batch."""

import random

import torch
from autograd import exact


def llama_1b():
    return llama(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8)


def llama(**sizes):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=32000, **sizes)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.config.use_cache = False
    return model


def trainer(model, steps, batch, longest, shortest=None, **settings):
    """Trains with transformers' Trainer on `batch` texts of a quarter of `longest` to `longest` tokens, and yields the losses. The Trainer calls
    back, so it runs in a thread of its own."""
    import queue
    import threading

    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return steps * batch

        def __getitem__(self, i):
            tokens = random.Random(i // batch).randint(shortest or longest // 4, longest)
            ids = torch.randint(0, 32000, (tokens,), generator=torch.Generator().manual_seed(i))
            return {"input_ids": ids, "labels": ids}

    class InOrder(Trainer):
        def _get_train_sampler(self, *args, **kwargs):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    losses, go_on = queue.Queue(), queue.Queue()

    class Report(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            if logs and "loss" in logs:
                losses.put(logs["loss"])
                go_on.get()

    args = TrainingArguments(
        output_dir="/tmp/programs-hf", per_device_train_batch_size=batch, max_steps=steps, logging_steps=1, report_to=[], save_strategy="no",
        optim="adamw_torch_fused", learning_rate=1e-4, bf16=True, disable_tqdm=True, **settings)

    def run():
        try:
            InOrder(model=model, args=args, train_dataset=Texts(), callbacks=[Report()]).train()
            losses.put(None)
        except BaseException as e:
            losses.put(e)

    threading.Thread(target=run, daemon=True).start()
    while (loss := losses.get()) is not None:
        if isinstance(loss, BaseException):
            raise loss
        yield loss
        go_on.put(None)


def hf(steps, batch=4, longest=2048, checkpoints=False):
    yield from trainer(llama_1b(), steps, int(batch), int(longest), gradient_checkpointing=bool(checkpoints))


def layers7b(steps, batch=8, longest=2048, checkpoints=False):
    """Eight layers of a Llama of 7B, always of the same size."""
    model = llama(hidden_size=4096, intermediate_size=11008, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=32)
    yield from trainer(model, steps, int(batch), int(longest), int(longest), gradient_checkpointing=bool(checkpoints))


def lora(steps, batch=8, longest=4096):
    """LoRA of peft with recomputation."""
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(llama_1b(), LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    model.enable_input_require_grads()
    yield from trainer(model, steps, int(batch), int(longest), gradient_checkpointing=True)


def adapters(steps, layers=8):
    """Layers of Llama-7B whose parameters, most of the memory, are frozen, with adapters of low rank."""
    from transformers import LlamaConfig, LlamaForCausalLM

    class Adapted(torch.nn.Module):
        def __init__(self, base, rank=16):
            super().__init__()
            self.base = base
            self.down = torch.nn.Parameter(0.01 * torch.randn(rank, base.in_features, device="cuda", dtype=base.weight.dtype))
            self.up = torch.nn.Parameter(torch.zeros(base.out_features, rank, device="cuda", dtype=base.weight.dtype))

        def forward(self, x):
            return self.base(x) + x @ self.down.T @ self.up.T

    exact()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=int(layers), use_cache=False, attn_implementation="eager")).requires_grad_(False)
    torch.set_default_dtype(torch.float32)
    for layer in model.model.layers:
        layer.self_attn.q_proj, layer.self_attn.v_proj = map(Adapted, (layer.self_attn.q_proj, layer.self_attn.v_proj))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)
    for _ in range(steps):
        ids = torch.randint(0, 32000, (4, 1024), device="cuda")
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def loop(model, steps, inputs, lr=1e-4):
    """A loop by hand: bf16 autocast, AdamW, gradients clipped."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
    for step in range(steps):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(**inputs(random.Random(step))).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def moe(steps):
    """Mixture of experts: how many tokens an expert gets is known only on the way."""
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4, num_local_experts=8,
        num_experts_per_tok=2, vocab_size=32000, use_cache=False)
    with torch.device("cuda"):
        model = MixtralForCausalLM(config)

    def inputs(rng):
        ids = torch.randint(0, 32000, (rng.choice([4, 6, 8]), rng.randint(256, 1536)), device="cuda")
        return {"input_ids": ids, "labels": ids}

    yield from loop(model, steps, inputs)


def t5(steps):
    """An encoder and a decoder, each with a length of its own."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(d_model=1024, d_kv=64, d_ff=2816, num_layers=16, num_heads=16, vocab_size=32128, feed_forward_proj="gated-gelu", use_cache=False,
        decoder_start_token_id=0)
    with torch.device("cuda"):
        model = T5ForConditionalGeneration(config)

    def inputs(rng):
        batch = rng.choice([8, 12, 16])
        return {
            "input_ids": torch.randint(0, 32000, (batch, rng.randint(128, 768)), device="cuda"),
            "labels": torch.randint(0, 32000, (batch, rng.randint(32, 256)), device="cuda"),
        }

    yield from loop(model, steps, inputs)


def always(model, steps, batch, tokens):
    """Trains on texts of one length."""
    ids = torch.randint(0, 30000, (batch, tokens), device="cuda")
    yield from loop(model, steps, lambda rng: {"input_ids": ids, "labels": ids})


def gpt2xl(steps, batch=4, tokens=1024, checkpoints=False):
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config(n_embd=1600, n_layer=48, n_head=25, use_cache=False))
    if checkpoints:
        model.gradient_checkpointing_enable()
    yield from always(model.train(), steps, int(batch), int(tokens))


def bert(steps, batch=32, tokens=512, checkpoints=False):
    from transformers import BertConfig, BertForMaskedLM

    with torch.device("cuda"):
        model = BertForMaskedLM(BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096))
    if checkpoints:
        model.gradient_checkpointing_enable()
    yield from always(model.train(), steps, int(batch), int(tokens))
