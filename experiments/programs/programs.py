"""Programs as people write them with the libraries that they use. Each is a generator that yields the loss of a step (for inference, any number).

All sizes are drawn from generators with fixed seeds, so that every run of a program makes the same requests.
"""

from autograd import functions, gan, inplace, lbfgs, transforms
from decoding import generate, ppo
from graphs import gat, sampled
from language import adapters, bert, gpt2xl, hf, layers7b, lora, moe, t5
from libraries import accelerated, cupy_kernels, equivariant, flow, gaussian, reversible, sentences, triton_kernels
from objectives import (adjoint, carried, contrastive, crops, ensembles, equilibrium, flows, growing, masked, matched, physics, preferences, replay,
                        scripted, selective, sharpness)
from parallel import pipeline, replicas, spread
from practice import caught, compiled, diffusion, distillation, graphed, prefetch, resumed, threads
from sequences import fourier, lstm, nested, scan, volumes, whisper
from vision import deeplab, maskrcnn, swin, timm_model, unet, vit
from zoo import zoo

PROGRAMS = {
    "hf": hf, "lora": lora, "adapters": adapters, "moe": moe, "t5": t5, "generate": generate, "ppo": ppo, "gat": gat, "sampled": sampled,
    "timm": timm_model, "maskrcnn": maskrcnn, "swin": swin, "deeplab": deeplab, "unet": unet, "vit": vit, "layers7b": layers7b,
    "gpt2xl": gpt2xl, "bert": bert, "spread": spread, "replicas": replicas, "pipeline": pipeline, "zoo": zoo,
}
# Small ones with deterministic kernels, one for each way to use PyTorch: their losses are to be the same to the bit, whatever serves them.
EXACT = {f.__name__: f for f in (
    gan, functions, inplace, transforms, lbfgs, lstm, whisper, fourier, scan, nested, volumes, threads, prefetch, graphed, compiled, distillation,
    diffusion, caught, resumed, contrastive, masked, crops, flows, matched, physics, adjoint, equilibrium, sharpness, replay, carried, selective,
    scripted, ensembles, growing, preferences, triton_kernels, cupy_kernels, gaussian, equivariant, flow, accelerated, sentences, reversible)}
PROGRAMS.update(EXACT)
