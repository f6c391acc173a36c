"""The models whose steps are exported. BERT, RoBERTa and GPT-2 are those of transformers by configuration, with nothing downloaded; where
transformers is missing, stand-ins of the same shapes."""

import torch
from torch import nn
from torch.nn import functional as F

VISION = {"alexnet": "alexnet", "vgg": "vgg11", "mnasnet": "mnasnet0_5", "mobilenet": "mobilenet_v2", "efficientnet": "efficientnet_b0",
          "vit": "vit_b_16"}
SEQUENCES = {"bert": 2, "roberta": 2, "gpt2-xl": 1024}  # tokens of an example
NAMES = sorted(VISION) + sorted(SEQUENCES)


def make(name):
    """Returns a model, and the loss as a function of its output and the labels."""
    if name in VISION:
        import torchvision

        return getattr(torchvision.models, VISION[name])(weights=None), F.cross_entropy
    return transformer(name), next_token if name == "gpt2-xl" else total


def load(name, batch):
    """Returns a batch and its labels."""
    if name in VISION:
        return torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
    tokens = torch.randint(0, 30000, (batch, SEQUENCES[name]))
    return tokens, tokens.clone()


def total(out, labels):
    pooled = getattr(out, "pooler_output", None)
    return (getattr(out, "last_hidden_state", out) if pooled is None else pooled).sum()


def next_token(out, labels):
    logits = getattr(out, "logits", out)
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1))


def transformer(name):
    try:
        import transformers
    except ImportError:
        return {"bert": Bert, "roberta": roberta, "gpt2-xl": GPT}[name]()
    if name == "bert":
        return transformers.BertModel(transformers.BertConfig(attn_implementation="eager"))
    if name == "roberta":
        config = transformers.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, attn_implementation="eager")
        return transformers.RobertaModel(config, add_pooling_layer=False)
    config = transformers.GPT2Config(n_embd=1600, n_layer=48, n_head=25, use_cache=False, attn_implementation="eager")
    return transformers.GPT2LMHeadModel(config)


def roberta():
    """Returns roberta-base without its pooler: 124,055,040 parameters."""
    return Bert(vocabulary=50265, positions=514, kinds=1, pooler=False)


def source(name):
    """Returns where a model is from."""
    if name in VISION:
        import torchvision

        return "torchvision %s" % torchvision.__version__
    try:
        import transformers
    except ImportError:
        return "a stand-in for that of transformers"
    return "transformers %s" % transformers.__version__


def heads(x, n):
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


class SelfAttention(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.n, self.query, self.key, self.value = n, nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, mask):
        q, k, v = (heads(f(x), self.n) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (q.shape[-1] ** 0.5) + mask
        y = torch.matmul(self.dropout(scores.softmax(-1)), v)
        return y.transpose(1, 2).contiguous().view(x.shape)


class BertLayer(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.attention, self.output = SelfAttention(d, n), nn.Linear(d, d)
        self.norm, self.dropout = nn.LayerNorm(d, eps=1e-12), nn.Dropout(0.1)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.norm2, self.dropout2 = nn.LayerNorm(d, eps=1e-12), nn.Dropout(0.1)

    def forward(self, x, mask):
        x = self.norm(self.dropout(self.output(self.attention(x, mask))) + x)
        return self.norm2(self.dropout2(self.down(F.gelu(self.up(x)))) + x)


class Bert(nn.Module):
    """bert-base-uncased: 109,482,240 parameters."""

    def __init__(self, d=768, n=12, layers=12, vocabulary=30522, positions=512, kinds=2, pooler=True):
        super().__init__()
        self.word, self.position, self.kind = nn.Embedding(vocabulary, d, padding_idx=0), nn.Embedding(positions, d), nn.Embedding(kinds, d)
        self.norm, self.dropout = nn.LayerNorm(d, eps=1e-12), nn.Dropout(0.1)
        self.layers = nn.ModuleList([BertLayer(d, n) for _ in range(layers)])
        self.pooler = nn.Linear(d, d) if pooler else None

    def forward(self, tokens):
        mask = (1.0 - torch.ones(tokens.shape)[:, None, None, :]) * torch.finfo(torch.float32).min
        places = torch.arange(tokens.shape[1]).unsqueeze(0)
        x = self.word(tokens) + self.kind(torch.zeros_like(tokens)) + self.position(places)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.pooler is None else torch.tanh(self.pooler(x[:, 0]))


class Conv1D(nn.Module):
    """A linear layer whose weight is stored as GPT-2's: inputs by outputs."""

    def __init__(self, out, d):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(d, out)), nn.Parameter(torch.zeros(out))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(x.shape[:-1] + (-1,))


class GPTLayer(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.n = n
        self.ln_1, self.c_attn, self.c_proj, self.attn_dropout = nn.LayerNorm(d), Conv1D(3 * d, d), Conv1D(d, d), nn.Dropout(0.1)
        self.ln_2, self.c_fc, self.mlp_proj = nn.LayerNorm(d), Conv1D(4 * d, d), Conv1D(d, 4 * d)
        self.dropout, self.dropout2 = nn.Dropout(0.1), nn.Dropout(0.1)

    def attention(self, x, mask):
        q, k, v = (heads(y, self.n) for y in self.c_attn(x).split(x.shape[-1], dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (q.shape[-1] ** 0.5)
        scores = torch.where(mask, scores, torch.full([], torch.finfo(scores.dtype).min))
        y = torch.matmul(self.attn_dropout(scores.softmax(-1)), v)
        return self.c_proj(y.transpose(1, 2).contiguous().view(x.shape))

    def forward(self, x, mask):
        x = x + self.dropout(self.attention(self.ln_1(x), mask))
        return x + self.dropout2(self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")))


class GPT(nn.Module):
    """GPT-2 XL: 1,557,611,200 parameters. The head is the embedding."""

    def __init__(self, d=1600, n=25, layers=48, vocabulary=50257, positions=1024):
        super().__init__()
        self.wte, self.wpe, self.dropout = nn.Embedding(vocabulary, d), nn.Embedding(positions, d), nn.Dropout(0.1)
        self.h = nn.ModuleList([GPTLayer(d, n) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(d)
        self.register_buffer("mask", torch.tril(torch.ones(positions, positions, dtype=torch.bool)).view(1, 1, positions, positions))

    def forward(self, tokens):
        n = tokens.shape[1]
        x = self.dropout(self.wte(tokens) + self.wpe(torch.arange(n)))
        for layer in self.h:
            x = layer(x, self.mask[:, :, :n, :n])
        return F.linear(self.ln_f(x), self.wte.weight)
