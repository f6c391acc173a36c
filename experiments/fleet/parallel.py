"""Trains a small model whose layers, tokens, stages or experts are split over the GPUs of one host, as PyTorch does it, and says what each rank has
allocated.

Usage: torchrun --nproc-per-node N parallel.py tp|cp|pp|dp|ep [--config NAME] [--steps N] [--batch N] [--micro N] [--seq TOKENS] [--ep N] [--scores]

tp splits matrices, and tokens between them (DTensor, the plan of torchtitan, the loss in parts), cp splits sequences (context_parallel), pp layers
(Schedule1F1B), dp is FSDP2, and ep is that with the experts split among N ranks (experts.py), all by default. Each expert gets as many tokens as any
other; with --scores tokens go where their scores are highest. The layers are those of transformers, in bfloat16 with AdamW: config.json beside this
file has their sizes, or config-NAME.json.
Under `gmtrace run -o FOLDER/` it makes the recordings of parallel.sh. Each rank prints a line of JSON.
"""

import argparse
import contextlib
import hashlib
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from transformers import DeepseekV3Config, LlamaConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3DecoderLayer, DeepseekV3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRMSNorm, LlamaRotaryEmbedding

from experts import Experts


def configured(name):
    """Reads a configuration: as transformers has it, but that no layer has experts yet, and its keys. But for its experts Mixtral is a Llama."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "config%s.json" % (name and "-" + name))) as f:
        keys = json.load(f)
    deep = keys.pop("model_type") == "deepseek_v3"
    config = DeepseekV3Config(**{**keys, "first_k_dense_replace": keys["num_hidden_layers"]}) if deep else LlamaConfig(**keys)
    config._attn_implementation, config.use_cache = "sdpa", False
    return config, keys


class Stage(nn.Module):
    """The layers of a model from one to another, with the embedding before the first and the classifier behind the last."""

    def __init__(self, config, begin, end):
        super().__init__()
        self.first, self.last = begin == 0, end == config.num_hidden_layers
        layer, rotary = LlamaDecoderLayer, LlamaRotaryEmbedding
        if isinstance(config, DeepseekV3Config):
            layer, rotary = DeepseekV3DecoderLayer, DeepseekV3RotaryEmbedding
        self.layers = nn.ModuleList(layer(config, i) for i in range(begin, end))
        self.rotary = rotary(config)
        if self.first:
            self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        if self.last:
            self.norm, self.head = LlamaRMSNorm(config.hidden_size, config.rms_norm_eps), nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.positions = None

    def forward(self, x):
        x = self.embed(x) if self.first else x
        turn = self.rotary(x.to_local() if hasattr(x, "to_local") else x, self.positions)
        for layer in self.layers:
            x = layer(x, attention_mask=None, position_ids=self.positions, position_embeddings=turn)
            x = x[0] if isinstance(x, tuple) else x
        return self.head(self.norm(x)) if self.last else x


def loss_of(logits, labels):
    """The loss of the next tokens: labels have one more, so that none has to be left out."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def split_matrices(model, mesh):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module

    gathered = dict(desired_input_layouts=(Replicate(),), input_layouts=(Shard(1),))
    parallelize_module(model, mesh, {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)})
    for layer in model.layers:
        parallelize_module(layer, mesh, {
            "input_layernorm": SequenceParallel(), "post_attention_layernorm": SequenceParallel(),
            "self_attn": PrepareModuleInput(input_kwarg_layouts={"hidden_states": Shard(1)}, desired_input_kwarg_layouts={"hidden_states": Replicate()}),
            "mlp": PrepareModuleInput(**gathered),
            **{"self_attn.%s_proj" % name: ColwiseParallel() for name in "qkv"}, "self_attn.o_proj": RowwiseParallel(output_layouts=Shard(1)),
            "mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel(output_layouts=Shard(1))})


def split_experts(o, keys, model):
    """Gives layers this rank's experts, and has those shared by the ranks that have the same ones: by none, if all ranks split them."""
    from torch.distributed.fsdp import fully_shard

    owners = init_device_mesh("cuda", (dist.get_world_size() // o.ep, o.ep), mesh_dim_names=("same", "experts"))
    for layer in model.layers[keys.get("first_k_dense_replace", 0):]:
        with torch.device("cuda"):
            layer.mlp = Experts(keys, owners["experts"].get_group(), not o.scores)
        fully_shard(layer.mlp.matrices, mesh=owners["same"])
        layer.mlp.matrices.set_gradient_divide_factor(dist.get_world_size())


def steps(o, config, model, run):
    """Makes steps, and returns their losses and how long they took."""
    optimizer, draw, losses, times = torch.optim.AdamW(model.parameters(), lr=1e-4), torch.Generator().manual_seed(0), [], []
    for _ in range(o.steps):
        ids = torch.randint(0, config.vocab_size, (o.batch * o.micro, o.seq + 1), generator=draw)
        ids, labels = ids[:, :-1].cuda(), ids[:, 1:].cuda()
        begin = time.perf_counter()
        losses.append(run(ids, labels))
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return losses, times


def plainly(model):
    def run(ids, labels):
        loss = loss_of(model(ids), labels)
        loss.backward()
        return loss
    return run


def by_matrices(model):
    from torch.distributed.tensor.parallel import loss_parallel

    def run(ids, labels):
        with loss_parallel():
            loss = loss_of(model(ids), labels)
            loss.backward()
        return loss
    return run


def by_tokens(model, mesh):
    from torch.distributed.tensor.experimental import context_parallel

    def run(ids, labels):
        positions = torch.arange(ids.shape[1], device="cuda")[None]
        with context_parallel(mesh, buffers=[ids, labels, positions], buffer_seq_dims=[1, 1, 1], no_restore_buffers={ids, labels, positions}):
            model.positions = positions
            loss = loss_of(model(ids), labels)
            loss.backward()
        return loss
    return run


def by_stages(o, stage, model):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    schedule = Schedule1F1B(PipelineStage(model, stage, dist.get_world_size(), torch.device("cuda", stage)), o.micro, loss_fn=loss_of)

    def run(ids, labels):
        losses = []
        schedule.step(*([ids] if model.first else []), **({"target": labels, "losses": losses} if model.last else {}))
        return sum(losses) if losses else torch.zeros(())
    return run


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("kind", choices=["tp", "cp", "pp", "dp", "ep"])
    p.add_argument("--config", default="")
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--batch", type=int, default=2)
    p.add_argument("--micro", type=int, default=1)
    p.add_argument("--seq", type=int, default=4096)
    p.add_argument("--ep", type=int, default=int(os.environ["WORLD_SIZE"]))
    p.add_argument("--scores", action="store_true")
    o = p.parse_args()
    rank, (config, keys) = int(os.environ["LOCAL_RANK"]), configured(o.config)
    torch.cuda.set_device(rank)
    torch.use_deterministic_algorithms(True, warn_only=True)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=(o.kind,))
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    layers, ranks = config.num_hidden_layers, dist.get_world_size()
    begin, end = (rank * layers // ranks, (rank + 1) * layers // ranks) if o.kind == "pp" else (0, layers)
    with torch.device("cuda"):
        model = Stage(config, begin, end)
        model.positions = torch.arange(o.seq)[None]
    if o.kind == "tp":
        split_matrices(model, mesh)
    if o.kind == "ep":
        split_experts(o, keys, model)
    if o.kind in ("cp", "dp", "ep"):
        from torch.distributed.fsdp import fully_shard

        for part in [*model.layers, model]:
            fully_shard(part, mesh=mesh)
    run = {"tp": lambda: by_matrices(model), "cp": lambda: by_tokens(model, mesh), "pp": lambda: by_stages(o, rank, model)}.get(o.kind, lambda: plainly(model))()
    torch.cuda.reset_peak_memory_stats()
    losses, times = steps(o, config, model, run)
    losses = [float(x.full_tensor() if hasattr(x, "full_tensor") else x) for x in losses]
    print("RESULT " + json.dumps({
        "kind": o.kind, "rank": rank, "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(),
        "losses": hashlib.md5(json.dumps(losses).encode()).hexdigest()[:12], "last": losses[-1], "steps": [round(t, 3) for t in times]}), flush=True)
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
