"""A selective scan by hand, over bytes."""

import torch
from torch import nn
import torch.nn.functional as F


def selective_scan(u, delta, A, B, C, D):
    b, l, d = u.shape
    dA = torch.exp(delta.unsqueeze(-1) * A)
    dBu = delta.unsqueeze(-1) * B.unsqueeze(2) * u.unsqueeze(-1)
    h = torch.zeros(b, d, A.shape[1])
    ys = []
    for t in range(l):
        h = dA[:, t] * h + dBu[:, t]
        ys.append((h * C[:, t].unsqueeze(1)).sum(-1))
    return torch.stack(ys, dim=1) + u * D


class MambaBlock(nn.Module):
    def __init__(self, d_model, d_state=8, expand=2, d_conv=4):
        super().__init__()
        self.d_inner, self.d_state = expand * d_model, d_state
        self.dt_rank = max(1, d_model // 16)
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner, bias=False)
        self.conv = nn.Conv1d(
            self.d_inner, self.d_inner, d_conv, groups=self.d_inner, padding=d_conv - 1
        )
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner)
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(A.log())
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, x):
        l = x.size(1)
        x, res = self.in_proj(x).split([self.d_inner, self.d_inner], dim=-1)
        x = self.conv(x.transpose(1, 2))[..., :l].transpose(1, 2)
        x = F.silu(x)
        dt, B, C = self.x_proj(x).split([self.dt_rank, self.d_state, self.d_state], dim=-1)
        y = selective_scan(x, F.softplus(self.dt_proj(dt)), -self.A_log.exp(), B, C, self.D)
        return self.out_proj(y * F.silu(res))


class Residual(nn.Module):
    def __init__(self, inner, d):
        super().__init__()
        self.inner, self.norm = inner, nn.LayerNorm(d)

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Net(nn.Module):
    def __init__(self, vocab=256, d=32, n=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.blocks = nn.Sequential(*(Residual(MambaBlock(d), d) for _ in range(n)))
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.head(self.blocks(self.embed(ids)))


text = b"the quick brown fox jumps over the lazy dog " * 4
data = torch.tensor(list(text))
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(3):
    ix = torch.randint(len(data) - 17, (4,))
    xb = torch.stack([data[i : i + 16] for i in ix])
    yb = torch.stack([data[i + 1 : i + 17] for i in ix])
    logits = net(xb)
    loss = F.cross_entropy(logits.flatten(0, 1), yb.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, float(loss))
