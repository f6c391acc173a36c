"""The models that are compiled: of torchvision, of timm (timm:NAME), of transformers by configuration, and randomN, a convolutional network of N nodes
that are wired at random; with the suffix " without dropout" some of them without it. Nothing is downloaded."""

import random

TOKENS = 256  # of an example
CALM = " without dropout"


def make(name, batch, size, device):
    """Returns a model, its inputs, and the tensor of its output that the loss is made of, as a function."""
    import torch

    text, name, calm = is_text(name), name.removesuffix(CALM), name.endswith(CALM)
    if text:
        return TEXT[name](**TEXT_CALM[name] if calm else {}).to(device), (torch.randint(0, 30000, (batch, TOKENS), device=device),), lambda out: out.logits
    return picture(name, **{"dropout": 0.0} if calm else {}).to(device), (torch.randn(batch, 3, size, size, device=device),), lambda out: out


def is_text(name):
    """Returns whether the inputs of a model are words."""
    return name.removesuffix(CALM) in TEXT


def picture(name, **options):
    if name.startswith("random"):
        return wired(int(name[len("random"):]))
    if name.startswith("timm:"):
        import timm

        return timm.create_model(name[len("timm:"):], pretrained=False)
    import torchvision

    return getattr(torchvision.models, name)(num_classes=1000, **options)


def deberta():
    from transformers import DebertaConfig, DebertaForMaskedLM

    return DebertaForMaskedLM(DebertaConfig(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072))


def mobilebert():
    from transformers import MobileBertConfig, MobileBertForMaskedLM

    return MobileBertForMaskedLM(MobileBertConfig())


def bert(**options):
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(**options))


def gpt2(**sizes):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False, **sizes))


def llama(layers=12, width=1024, words=32000):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 64, intermediate_size=width * 43 // 16,
                                        vocab_size=words, use_cache=False))


SMALL = 30000  # the words of a small model: those of the inputs
TEXT = {"deberta": deberta, "mobilebert": mobilebert, "bert": bert, "gpt2": gpt2, "llama": llama,
        "gpt2 of 4 layers": lambda: gpt2(n_layer=4, n_embd=512, n_head=8, vocab_size=SMALL), "llama of 4 layers": lambda: llama(4, 512, SMALL)}


TEXT_CALM = {"gpt2": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}, "bert": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}}


def wired(count):
    import torch

    class Wired(torch.nn.Module):
        """Nodes that add what they read and convolve it, wired as a Watts-Strogatz graph (n, 4, 0.75) with edges from lower to higher numbers."""

        def __init__(self, nodes, channels=32):
            super().__init__()
            rng = random.Random(nodes)
            edges = set()
            for i in range(nodes):
                for near in (1, 2):
                    to = (i + near) % nodes
                    while rng.random() < 0.75 or to == i or tuple(sorted((i, to))) in edges:
                        to = rng.randrange(nodes)
                        if to != i and tuple(sorted((i, to))) not in edges:
                            break
                    edges.add(tuple(sorted((i, to))))
            self.reads = [sorted(a for a, b in edges if b == i) for i in range(nodes)]
            self.ends = [i for i in range(nodes) if all(a != i for a, _ in edges)]
            self.first = torch.nn.Conv2d(3, channels, 3, padding=1)
            self.convs = torch.nn.ModuleList(torch.nn.Conv2d(channels, channels, 3, padding=1) for _ in range(nodes))

        def forward(self, x):
            x, made = self.first(x), []
            for reads, conv in zip(self.reads, self.convs):
                made.append(conv(torch.relu(sum(made[i] for i in reads) if reads else x)))
            return sum(made[i] for i in self.ends)

    return Wired(count)
