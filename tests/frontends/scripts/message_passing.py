import torch
from torch import nn
from torch.nn import functional as F
from typing import NamedTuple


class Graph(NamedTuple):
    x: torch.Tensor
    edge_index: torch.Tensor
    edge_attr: torch.Tensor
    y: torch.Tensor


class Batch(NamedTuple):
    x: torch.Tensor
    edge_index: torch.Tensor
    edge_attr: torch.Tensor
    batch: torch.Tensor
    y: torch.Tensor


def random_molecule(n):
    src = torch.arange(n)
    dst = (src + 1) % n
    edge_index = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
    return Graph(torch.randn(n, 7), edge_index, torch.randn(2 * n, 3), torch.randn(1))


def collate(graphs):
    offsets = torch.tensor([0] + [g.x.size(0) for g in graphs[:-1]]).cumsum(0)
    return Batch(
        x=torch.cat([g.x for g in graphs]),
        edge_index=torch.cat([g.edge_index + o for g, o in zip(graphs, offsets)], dim=1),
        edge_attr=torch.cat([g.edge_attr for g in graphs]),
        batch=torch.cat([torch.full((g.x.size(0),), i, dtype=torch.long) for i, g in enumerate(graphs)]),
        y=torch.stack([g.y for g in graphs]),
    )


def scatter_softmax(score, index, n):
    maximum = torch.full((n,), float("-inf")).scatter_reduce(0, index, score, reduce="amax")
    e = (score - maximum[index]).exp()
    denominator = torch.zeros(n).index_add(0, index, e)
    return e / denominator[index]


class MessagePassing(nn.Module):
    def __init__(self, dim, edge_dim):
        super().__init__()
        self.msg = nn.Sequential(nn.Linear(2 * dim + edge_dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.gate = nn.Linear(dim, 1)
        self.update = nn.GRUCell(dim, dim)

    def forward(self, x, edge_index, edge_attr):
        row, col = edge_index
        m = self.msg(torch.cat([x[row], x[col], edge_attr], dim=-1))
        alpha = scatter_softmax(self.gate(m).squeeze(-1), col, x.size(0))
        agg = torch.zeros_like(x).index_add_(0, col, m * alpha.unsqueeze(-1))
        return self.update(agg, x)


class Set2Set(nn.Module):
    def __init__(self, dim, steps=3):
        super().__init__()
        self.lstm = nn.LSTMCell(2 * dim, dim)
        self.dim, self.steps = dim, steps

    def forward(self, x, batch, n):
        h = (x.new_zeros(n, self.dim), x.new_zeros(n, self.dim))
        q_star = x.new_zeros(n, 2 * self.dim)
        for _ in range(self.steps):
            h = self.lstm(q_star, h)
            q = h[0]
            e = (x * q[batch]).sum(dim=-1)
            a = scatter_softmax(e, batch, n)
            r = torch.zeros(n, self.dim).index_add(0, batch, a.view(-1, 1) * x)
            q_star = torch.cat([q, r], dim=-1)
        return q_star


class MPNN(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Linear(7, dim)
        self.layers = nn.ModuleList([MessagePassing(dim, 3) for _ in range(3)])
        self.pool = Set2Set(dim)
        self.out = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, data: Batch):
        x = F.relu(self.embed(data.x))
        for layer in self.layers:
            x = x + layer(x, data.edge_index, data.edge_attr)
        return self.out(self.pool(x, data.batch, data.y.size(0)))


torch.manual_seed(0)
dataset = [random_molecule(4 + i % 5) for i in range(12)]
mean = torch.stack([g.y for g in dataset]).mean()
std = torch.stack([g.y for g in dataset]).std()
loader = torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate)
model = MPNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.7, patience=5, min_lr=1e-5)
for epoch in range(3):
    error = 0.0
    for data in loader:
        optimizer.zero_grad()
        pred = model(data)
        loss = F.mse_loss(pred, (data.y - mean) / std)
        loss.backward()
        optimizer.step()
        error += (pred * std + mean - data.y).abs().sum().item()
    scheduler.step(error / len(dataset))
    print(f"Epoch: {epoch:03d}, MAE: {error / len(dataset):.4f}")
