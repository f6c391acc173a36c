"""Each architecture of transformers, timm, torchvision and torchaudio, by its name and with what its configuration says by default, made small.

`python3 zoo.py [LIBRARY]` prints the names.
"""

import inspect
import random
import sys
import warnings
import zlib

import torch
from torch import nn

from autograd import exact

DEPTHS = "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_decoder_layers", "num_encoder_layers"
PARAMETERS = 120e6  # an architecture gets fewer layers until it has at most so many


def transformers_names():
    from transformers.models.auto import modeling_auto

    return sorted(modeling_auto.MODEL_MAPPING_NAMES)


def timm_names():
    import timm

    modules = sorted({timm.models.model_entrypoint(n).__module__.rsplit(".", 1)[-1] for n in timm.list_models()})
    return [min(timm.list_models(module=m), key=lambda n: (len(n), n)) for m in modules if timm.list_models(module=m)]


def torchvision_names():
    import torchvision.models as models

    return [n for n in models.list_models() if "quantized" not in n]


def torchaudio_names():
    return ["conformer", "wav2vec2_base", "hubert_base", "convtasnet", "deepspeech", "emformer", "wavernn", "tacotron2", "hdemucs_low"]


NAMES = {"transformers": transformers_names, "timm": timm_names, "torchvision": torchvision_names, "torchaudio": torchaudio_names}


def parts(config):
    """Yields a configuration and those within it."""
    from transformers import PretrainedConfig

    yield config
    for value in list(vars(config).values()):
        if isinstance(value, PretrainedConfig):
            yield from parts(value)


def small(kind, depth):
    """Returns a configuration of so many layers, with 8,192 words."""
    from transformers import CONFIG_MAPPING

    config = CONFIG_MAPPING[kind]()
    for part in parts(config):
        for key in DEPTHS:
            if isinstance(getattr(part, key, None), int):
                setattr(part, key, min(getattr(part, key), depth))
        layers = getattr(part, "num_hidden_layers", None)
        for key, value in list(vars(part).items()):
            if key == "vocab_size" and isinstance(value, int):
                part.vocab_size = min(value, 8192)
            elif key.endswith("_token_id") and isinstance(value, int) and value >= 8192:
                setattr(part, key, 8191)
            elif key in ("layer_types", "mlp_layer_types", "layers_block_type") and isinstance(value, list) and isinstance(layers, int):
                setattr(part, key, value[-layers:])
            elif key in ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts") and isinstance(value, int):
                setattr(part, key, min(value, 8))
        part.use_cache = False
    return config


def transformer(kind):
    """Returns a model of transformers of at most PARAMETERS, with as many of its layers as that gives, up to 6."""
    from transformers import AutoModel

    for depth in 6, 4, 2:
        with torch.device("meta"):
            model = AutoModel.from_config(small(kind, depth))
        if sum(p.numel() for p in model.parameters()) <= PARAMETERS:
            return AutoModel.from_config(small(kind, depth))
    return AutoModel.from_config(small(kind, 1))


def number(config, key, default):
    """Returns a number of a configuration, or of the first within it that has one."""
    for part in parts(config):
        value = getattr(part, key, None)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], int):
            value = value[0]
        if isinstance(value, int):
            return value
    return default


def words(model, rng):
    """Returns inputs of a model of transformers, by the names of its parameters."""
    config, names, x = model.config, inspect.signature(model.forward).parameters, {}
    batch, longest = rng.choice([8, 12, 16]), min(512, number(config, "max_position_embeddings", 512) - 8)
    length = rng.choice([longest, longest, 3 * longest // 4])
    vocabulary = number(config, "vocab_size", 1000)
    ids = lambda n: torch.randint(3, vocabulary - 4, (batch, n), device="cuda")
    main = getattr(model, "main_input_name", "input_ids")
    if "pixel_values" in names and main == "pixel_values":
        side = number(config, "image_size", 224)
        batch = max(2, batch * 224 ** 2 // side ** 2)
        x["pixel_values"] = torch.randn(batch, number(config, "num_channels", 3), side, side, device="cuda")
    elif main == "input_values":
        x["input_values"] = torch.randn(batch, 32000, device="cuda")
    elif main == "input_features":
        x["input_features"] = torch.randn(batch, number(config, "num_mel_bins", 80), 2 * number(config, "max_source_positions", 1500), device="cuda")
    else:
        x["input_ids"] = ids(length)
        if "attention_mask" in names:
            x["attention_mask"] = torch.ones(batch, length, dtype=torch.long, device="cuda")
            for row in x["attention_mask"]:
                row[length - rng.randint(0, length // 3):] = 0
        if "pixel_values" in names:
            side = number(config, "image_size", 224)
            x["pixel_values"] = torch.randn(batch, 3, side, side, device="cuda")
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        x["decoder_input_ids"] = ids(length // 2)
    return x


def floats(found):
    """Yields the tensors that a model gives and that have gradients."""
    if isinstance(found, torch.Tensor):
        if found.is_floating_point() and found.requires_grad:
            yield found
    elif isinstance(found, dict):
        for value in found.values():
            yield from floats(value)
    elif isinstance(found, (list, tuple)):
        for value in found:
            yield from floats(value)


def timm_model(name):
    import timm

    net = timm.create_model(name, pretrained=False, num_classes=100)
    shape = net.default_cfg["input_size"]
    return net, lambda rng: (torch.randn(rng.choice([24, 32]), *shape, device="cuda"),)


def torchvision_model(name):
    import torchvision.models as models

    more = dict(weights_backbone=None) if "weights_backbone" in inspect.signature(models.get_model_builder(name)).parameters else {}
    net = models.get_model(name, weights=None, **more)
    module = models.get_model_builder(name).__module__
    if ".detection" in module:
        def pictures(rng):
            images, targets = [], []
            for _ in range(4):
                n, corner = rng.randint(1, 9), 200 * torch.rand(1, 2, device="cuda")
                box = torch.cat([corner.expand(n, 2), corner + 40 + 60 * torch.rand(n, 2, device="cuda")], 1)
                images.append(torch.rand(3, rng.choice([320, 384]), rng.choice([320, 416]), device="cuda"))
                targets.append({"boxes": box, "labels": torch.ones(n, dtype=torch.long, device="cuda"), "keypoints": torch.ones(n, 17, 3, device="cuda"),
                                "masks": torch.ones(n, *images[-1].shape[1:], dtype=torch.uint8, device="cuda")})
            return images, targets
        return net, pictures
    if ".video" in module:
        side = 224 if "mvit" in name or "swin" in name else 112
        return net, lambda rng: (torch.rand(4, 3, 16, side, side, device="cuda"),)
    if ".optical_flow" in module:
        return net, lambda rng: (torch.rand(2, 3, 256, 320, device="cuda"), torch.rand(2, 3, 256, 320, device="cuda"))
    side = {"inception_v3": 299, "vit_h_14": 224}.get(name, 224)
    return net, lambda rng: (torch.rand(rng.choice([16, 24]), 3, side, side, device="cuda"),)


def torchaudio_model(name):
    import torchaudio.models as models

    wave = lambda *shape: torch.randn(*shape, device="cuda")
    lengths = lambda n, longest: torch.full((n,), longest, device="cuda")
    if name == "conformer":
        net = models.Conformer(80, 4, 512, 6, 31, dropout=0.1)
        return net, lambda rng: (wave(8, 600, 80), lengths(8, 600))
    if name == "emformer":
        net = models.Emformer(256, 4, 1024, 6, 32, right_context_length=4)
        return net, lambda rng: (wave(8, 516, 256), lengths(8, 512))
    if name == "convtasnet":
        return models.conv_tasnet_base(), lambda rng: (wave(4, 1, rng.choice([16000, 24000])),)
    if name == "deepspeech":
        return models.DeepSpeech(80, n_hidden=1024), lambda rng: (wave(8, 1, rng.choice([400, 500]), 80),)
    if name == "wavernn":
        return models.WaveRNN([5, 5, 8], 64, 200), lambda rng: (wave(4, 1, 200 * 16), wave(4, 1, 20, 128))
    if name == "tacotron2":
        def spoken(rng):
            n, frames = rng.choice([80, 100]), rng.choice([200, 300])
            return torch.randint(0, 140, (8, n), device="cuda"), lengths(8, n), wave(8, 80, frames), lengths(8, frames)
        return models.Tacotron2(), spoken
    if name == "hdemucs_low":
        return models.hdemucs_low(["a", "b"]), lambda rng: (wave(2, 2, 44100),)
    net = getattr(models, name)(encoder_layer_drop=0.1)
    return net, lambda rng: (wave(8, rng.choice([24000, 32000])),)


def checkpoint(net):
    """Has a model of transformers or timm recompute its layers by the checkpoints of its library."""
    if hasattr(net, "gradient_checkpointing_enable"):
        net.gradient_checkpointing_enable()
    else:
        net.set_grad_checkpointing()


def zoo(steps, name, checkpoints="0"):
    """Trains LIBRARY:NAME: in fp32, under bf16 autocast, or in bf16, by AdamW, momentum or Adafactor, whichever its name's checksum says."""
    exact()
    warnings.filterwarnings("ignore")
    if torch.cuda.get_allocator_backend() == "native":
        torch.cuda.set_per_process_memory_fraction(0.1)  # others are beside it: what takes more is left out
    library, name = name.split(":")
    kind, inputs = zlib.crc32(name.encode()), None
    if library == "transformers":
        net = transformer(name)
        inputs = lambda rng: words(net, rng)
    else:
        net, inputs = {"timm": timm_model, "torchvision": torchvision_model, "torchaudio": torchaudio_model}[library](name)
    if int(checkpoints):
        checkpoint(net)
    dtype = torch.bfloat16 if kind % 3 == 2 and library == "transformers" else torch.float32
    net = net.cuda().to(dtype).train()
    optimizer = [lambda p: torch.optim.AdamW(p, 1e-5), lambda p: torch.optim.SGD(p, 1e-5, momentum=0.9),
                 lambda p: torch.optim.AdamW(p, 1e-5, fused=True), lambda p: torch.optim.Adafactor(p, 1e-5)][kind // 3 % 4](net.parameters())
    for step in range(steps):
        x = inputs(random.Random(step // 2))
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=kind % 3 == 1):
            if isinstance(x, dict):
                found = net(**{k: v.to(dtype) if v.is_floating_point() else v for k, v in x.items()})
            else:
                found = net(*x)
        loss = sum(f.float().square().mean() for f in floats(found))
        optimizer.zero_grad()
        loss.backward()
        if kind % 5 == 0:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        yield loss


if __name__ == "__main__":
    for library in sys.argv[1:] or NAMES:
        print("\n".join("zoo:name=%s:%s" % (library, name) for name in NAMES[library]()))
