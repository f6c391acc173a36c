"""How many functions of the hook run for each tensor that is saved, on a real PyTorch, where nothing has to leave: short steps wait for these."""

import sys

import torch
from torch import nn

from real import main
from real_demand import Short


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(64), nn.Linear(64, 64)

    def forward(self, x):
        return torch.relu(self.linear(self.norm(x))) + x


def step(model):
    model(torch.rand(32, 64)).square().mean().backward()
    for p in model.parameters():
        p.grad = None


def calls(run):
    """Returns how many of the hook's functions run meanwhile."""
    count = [0]

    def note(frame, event, argument):
        count[0] += event == "call" and "gmswap_hook" in frame.f_code.co_filename

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count[0]


def test_calls():
    short, model = Short(1 << 40), nn.Sequential(*[Block() for _ in range(20)])
    short.hooked.runtime.given_up = True  # no schedule is made
    for _ in range(5):
        step(model)
    saved = []
    pack = short.hooked.runtime.pack
    short.hooked.runtime.pack = lambda tensor: (saved.append(tensor.shape), pack(tensor))[1]
    step(model)
    short.hooked.runtime.pack = pack
    each = calls(lambda: step(model)) / float(len(saved))
    short.remove()
    assert len(saved) > 100 and 5 < each < 20, (len(saved), each)


if __name__ == "__main__":
    main(globals())
