"""Transformer language models whose feed-forward layers are sparse mixtures of experts.

Three ways to send tokens to experts: by loops over experts (`SparseMoE`), by one-hot tensors
with a capacity (`CapacityMoE`, GShard, Lepikhin et al., 2020), and by choice of the experts
(`ExpertChoiceMoE`, Zhou et al., 2022).
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Config:
    vocabulary: int = 32000
    dim: int = 512
    hidden: int = 2048
    layers: int = 8
    heads: int = 8
    groups: int = 2
    experts: int = 8
    top_k: int = 2
    capacity_factor: float = 1.25
    kind: str = "sparse"


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight


class Expert(nn.Module):
    """A gated feed-forward network (SwiGLU)."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoE(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(config.dim, config.experts, bias=False)
        self.experts = nn.ModuleList(
            Expert(config.dim, config.hidden) for _ in range(config.experts)
        )
        self.top_k = config.top_k

    def forward(self, x):
        batch, length, dim = x.shape
        tokens = x.view(-1, dim)
        logits = self.gate(tokens)
        probabilities = F.softmax(logits, dim=1)
        weights, selected = torch.topk(probabilities, self.top_k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows, slots = torch.where(selected == index)
            chosen = expert(tokens[rows]) * weights[rows, slots, None]
            out.index_add_(0, rows, chosen)
        return out.view(batch, length, dim), self.balance(probabilities, selected)

    def balance(self, probabilities, selected):
        """The loss that keeps the experts equally busy (Fedus et al., 2021)."""
        count = len(self.experts)
        share = F.one_hot(selected, count).float().sum(dim=1).mean(dim=0)
        return count * torch.sum(share * probabilities.mean(dim=0))


class CapacityMoE(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(config.dim, config.experts) * config.dim**-0.5)
        self.w_in = nn.Parameter(torch.randn(config.experts, config.dim, config.hidden) * 0.02)
        self.w_out = nn.Parameter(torch.randn(config.experts, config.hidden, config.dim) * 0.02)
        self.experts = config.experts
        self.factor = config.capacity_factor

    def capacity(self, length):
        return max(int(self.factor * length / self.experts), 1)

    def forward(self, x):
        capacity = self.capacity(x.size(1))
        gates = torch.einsum("gsd,de->gse", x, self.gate).softmax(dim=-1)
        chosen = gates.argmax(dim=-1)
        one_hot = F.one_hot(chosen, self.experts).to(x.dtype)
        position = (one_hot.cumsum(dim=1) - 1) * one_hot
        one_hot = one_hot * (position < capacity)
        gate = (gates * one_hot).sum(dim=-1, keepdim=True)
        slots = position.sum(dim=-1).long().clamp(max=capacity - 1)
        dispatch = one_hot.unsqueeze(-1) * F.one_hot(slots, capacity).unsqueeze(2)
        combine = dispatch * gate.unsqueeze(-1)
        inputs = torch.einsum("gsec,gsd->egcd", dispatch, x)
        hidden = F.gelu(torch.einsum("egcd,edh->egch", inputs, self.w_in))
        outputs = torch.einsum("egch,ehd->egcd", hidden, self.w_out)
        y = torch.einsum("gsec,egcd->gsd", combine, outputs)
        share = one_hot.mean(dim=1)
        return y, self.experts * (share * gates.mean(dim=1)).sum(-1).mean()


class ExpertChoiceMoE(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(config.dim, config.experts, bias=False)
        self.experts = nn.ModuleDict(
            {f"expert{i}": Expert(config.dim, config.hidden) for i in range(config.experts)}
        )

    def forward(self, x):
        flat = x.flatten(0, 1)
        capacity = flat.shape[0] // len(self.experts) + 1
        affinity = self.gate(flat).softmax(-1).t()
        gates, indices = affinity.topk(min(capacity, flat.shape[0]), dim=-1)
        outputs = []
        for expert, index in zip(self.experts.values(), indices, strict=True):
            outputs.append(expert(flat.index_select(0, index)))
        weighted = torch.stack(outputs) * gates[..., None]
        index = indices.reshape(-1, 1).expand(-1, x.shape[-1])
        y = torch.zeros_like(flat).scatter_add(0, index, weighted.flatten(0, 1))
        return y.view_as(x), x.new_zeros(())


class GroupedAttention(nn.Module):
    """Causal attention in which several heads share keys and values."""

    def __init__(self, config):
        super().__init__()
        self.heads, self.groups = config.heads, config.groups
        self.head_dim = config.dim // config.heads
        self.wq = nn.Linear(config.dim, self.heads * self.head_dim, bias=False)
        self.wkv = nn.Linear(config.dim, 2 * self.groups * self.head_dim, bias=False)
        self.wo = nn.Linear(self.heads * self.head_dim, config.dim, bias=False)

    @staticmethod
    def rotate(x, angles):
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
        rotated = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
        return rotated.flatten(-2)

    def forward(self, x, angles):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.heads, self.head_dim)
        k, v = self.wkv(x).view(b, t, 2, self.groups, self.head_dim).unbind(2)
        q, k = self.rotate(q, angles), self.rotate(k, angles)
        repeat = self.heads // self.groups
        k = k.repeat_interleave(repeat, dim=2)
        v = v[:, :, :, None, :].expand(-1, -1, -1, repeat, -1).reshape(b, t, self.heads, -1)
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))


class Block(nn.Module):
    kinds = {"sparse": SparseMoE, "capacity": CapacityMoE, "choice": ExpertChoiceMoE}  # noqa: RUF012

    def __init__(self, config):
        super().__init__()
        self.attention = GroupedAttention(config)
        self.moe = self.kinds[config.kind](config)
        self.norm1, self.norm2 = RMSNorm(config.dim), RMSNorm(config.dim)

    def forward(self, x, angles):
        x = x + self.attention(self.norm1(x), angles)
        y, loss = self.moe(self.norm2(x))
        return x + y, loss


class MoETransformer(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.config = config = Config(**options)
        self.embedding = nn.Embedding(config.vocabulary, config.dim)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim)
        self.output = nn.Linear(config.dim, config.vocabulary, bias=False)

    def angles(self, length, theta=10000.0):
        head_dim = self.config.dim // self.config.heads
        frequencies = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
        return torch.outer(torch.arange(length).float(), frequencies)

    def forward(self, tokens, targets=None):
        x = self.embedding(tokens)
        angles = self.angles(tokens.shape[-1])
        losses = []
        for block in self.blocks:
            x, loss = block(x, angles)
            losses.append(loss)
        logits = self.output(self.norm(x))
        if targets is None:
            return logits
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return loss + 0.01 * torch.stack(losses).mean()
