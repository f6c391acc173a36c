"""Graph networks of PyG."""

import random

import torch
import torch.nn.functional as F


def random_graph(rng, nodes, edges, features, classes):
    n = rng.randint(nodes // 3, nodes)
    e = rng.randint(edges // 3, edges)
    return torch.randn(n, features, device="cuda"), torch.randint(0, n, (2, e), device="cuda"), torch.randint(0, classes, (n,), device="cuda")


def gat(steps):
    """Attention on random graphs of all sizes: tensors for each edge and head."""
    from torch_geometric.nn import GATConv

    layers = torch.nn.ModuleList([GATConv(256, 64, heads=8), GATConv(512, 64, heads=8), GATConv(512, 64, heads=8), GATConv(512, 40, heads=1)]).cuda()
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    for step in range(steps):
        x, edges, y = random_graph(random.Random(step), 300_000, 3_000_000, 256, 40)
        for layer in layers[:-1]:
            x = F.elu(layer(x, edges))
        loss = F.cross_entropy(layers[-1](x, edges), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def sampled(steps):
    """Many small graphs in a step, as with sampled neighbours: small requests, of all sizes."""
    from torch_geometric.nn import SAGEConv

    layers = torch.nn.ModuleList([SAGEConv(128, 256), SAGEConv(256, 256), SAGEConv(256, 40)]).cuda()
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    for step in range(steps):
        rng = random.Random(step)
        for _ in range(16):
            x, edges, y = random_graph(rng, 20_000, 200_000, 128, 40)
            for layer in layers[:-1]:
                x = F.dropout(F.relu(layer(x, edges)), 0.2)
            loss = F.cross_entropy(layers[-1](x, edges), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield loss
