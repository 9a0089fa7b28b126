from __future__ import annotations

import copy
import dataclasses
import enum
import functools
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Parameterisation(enum.Enum):
    EPS = "eps"
    V = "v"
    X0 = "x0"


@dataclasses.dataclass(frozen=True)
class Config:
    image: int = 16
    channels: int = 3
    base: int = 16
    mults: tuple[int, ...] = (1, 2)
    timesteps: int = 50
    classes: int = 5
    objective: Parameterisation = Parameterisation.V
    p_uncond: float = 0.1
    ema: float = 0.99
    accumulate: int = 2


def cosine_betas(n: int, s: float = 0.008) -> Tensor:
    t = torch.linspace(0, n, n + 1, dtype=torch.float64) / n
    bar = torch.cos((t + s) / (1 + s) * torch.pi * 0.5) ** 2
    bar = bar / bar[0]
    return (1 - bar[1:] / bar[:-1]).clamp(0, 0.999)


def extract(a: Tensor, t: Tensor, shape: torch.Size) -> Tensor:
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))


class Modulated(nn.Module):
    def __init__(self, i: int, o: int, emb: int):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)
        self.n1, self.n2 = nn.GroupNorm(4, i), nn.GroupNorm(4, o)
        self.film = nn.Linear(emb, 2 * o)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        h = self.a(F.silu(self.n1(x)))
        scale, shift = self.film(e)[..., None, None].chunk(2, dim=1)
        h = self.b(F.silu(self.n2(h) * (1 + scale) + shift))
        return h + self.skip(x)


class Net(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        emb = cfg.base * 4
        self.freq = nn.Buffer(torch.exp(-np.log(1e4) * torch.arange(cfg.base) / cfg.base))
        self.time = nn.Sequential(nn.Linear(2 * cfg.base, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Embedding(cfg.classes + 1, emb)
        dims = [cfg.base * m for m in (1, *cfg.mults)]
        self.stem = nn.Conv2d(cfg.channels, cfg.base, 3, padding=1)
        self.down = nn.ModuleList([Modulated(a, b, emb) for a, b in zip(dims, dims[1:])])
        self.mid = Modulated(dims[-1], dims[-1], emb)
        self.up = nn.ModuleList([Modulated(2 * b, a, emb) for a, b in zip(dims[-2::-1], dims[:0:-1])])
        self.head = nn.Conv2d(cfg.base, cfg.channels, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        ang = t[:, None].float() * self.freq[None]
        e = self.time(torch.cat([ang.sin(), ang.cos()], -1)) + self.label(y)
        x = self.stem(x)
        kept = []
        for block in self.down:
            x = block(x, e)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.mid(x, e)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, kept.pop()], 1), e)
        return self.head(x)


class Diffusion(nn.Module):
    alpha_bar: Tensor

    def __init__(self, cfg: Config, net: nn.Module):
        super().__init__()
        self.cfg, self.net = cfg, net
        bar = torch.cumprod(1 - cosine_betas(cfg.timesteps), 0)
        self.register_buffer("alpha_bar", bar.float())
        snr = bar / (1 - bar)
        self.register_buffer("weight", (snr.clamp(max=5) / (snr + 1)).float())

    def target(self, x0: Tensor, eps: Tensor, t: Tensor) -> Tensor:
        bar = extract(self.alpha_bar, t, x0.shape)
        match self.cfg.objective:
            case Parameterisation.EPS:
                return eps
            case Parameterisation.X0:
                return x0
            case Parameterisation.V:
                return bar.sqrt() * eps - (1 - bar).sqrt() * x0
        raise ValueError(self.cfg.objective)

    def loss(self, x0: Tensor, y: Tensor) -> Tensor:
        t = torch.randint(0, self.cfg.timesteps, (x0.size(0),), device=x0.device)
        eps = torch.randn_like(x0)
        bar = extract(self.alpha_bar, t, x0.shape)
        xt = bar.sqrt() * x0 + (1 - bar).sqrt() * eps
        y = torch.where(torch.rand(y.shape) < self.cfg.p_uncond, self.cfg.classes, y)
        out = self.net(xt, t, y)
        per = F.mse_loss(out, self.target(x0, eps, t), reduction="none").flatten(1).mean(1)
        return (per * self.weight[t]).mean()

    @torch.no_grad()
    def sample(self, y: Tensor, steps: int = 5, guidance: float = 2.0) -> Tensor:
        x = torch.randn(len(y), self.cfg.channels, self.cfg.image, self.cfg.image)
        times = torch.linspace(self.cfg.timesteps - 1, 0, steps + 1).long()
        null = torch.full_like(y, self.cfg.classes)
        for now, then in zip(times[:-1].tolist(), times[1:].tolist()):
            t = torch.full((len(y),), now)
            cond, uncond = self.net(x.repeat(2, 1, 1, 1), t.repeat(2), torch.cat([y, null])).chunk(2)
            v = uncond + guidance * (cond - uncond)
            a, b = self.alpha_bar[now], self.alpha_bar[then]
            x0 = (a.sqrt() * x - (1 - a).sqrt() * v).clamp(-1, 1)
            eps = (x - a.sqrt() * x0) / (1 - a).sqrt()
            x = b.sqrt() * x0 + (1 - b).sqrt() * eps
        return x


def cycle(loader) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


def main() -> None:
    torch.manual_seed(0)
    cfg = Config()
    model = Diffusion(cfg, Net(cfg))
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.99))
    warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, (step + 1) / 10))
    data = torch.utils.data.TensorDataset(torch.rand(20, 3, 16, 16) * 2 - 1, torch.randint(0, 5, (20,)))
    batches = cycle(torch.utils.data.DataLoader(data, 4, shuffle=True, drop_last=True))
    for step in range(3):
        total = 0.0
        for _ in range(cfg.accumulate):
            x, y = next(batches)
            loss = model.loss(x, y) / cfg.accumulate
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        warm.step()
        with torch.no_grad():
            for a, b in zip(ema.parameters(), model.parameters(), strict=True):
                a.lerp_(b, 1 - cfg.ema)
        print(f"{step:4d} {total:.4f}")
    grid = ema.sample(torch.arange(5))
    print(functools.reduce(lambda a, b: a * b, grid.shape), grid.min() >= -10)


if __name__ == "__main__":
    main()
