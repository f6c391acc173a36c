"""Programs as people write them with the libraries that they use. Each is a generator that yields the loss of a step (for inference, any number).

All sizes are drawn from generators with fixed seeds, so that every run of a program makes the same requests.
"""

from decoding import generate, ppo
from graphs import gat, sampled
from language import bert, gpt2xl, hf, layers7b, lora, moe, t5
from vision import deeplab, maskrcnn, swin, timm_model, unet, vit

PROGRAMS = {
    "hf": hf, "lora": lora, "moe": moe, "t5": t5, "generate": generate, "ppo": ppo, "gat": gat, "sampled": sampled,
    "timm": timm_model, "maskrcnn": maskrcnn, "swin": swin, "deeplab": deeplab, "unet": unet, "vit": vit, "layers7b": layers7b,
    "gpt2xl": gpt2xl, "bert": bert,
}
